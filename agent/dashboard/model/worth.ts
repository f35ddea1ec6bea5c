import type { GatewayView, Snapshot } from '../../report/snapshot/snapshot.ts'
import { latestDecision, type DrainView } from '../../report/snapshot/drain-view.ts'
import { standingOf, workloadOf } from './lanes.ts'

/** The fewest drains for a result. With fewer drains, "99.9 %" is only the longest of them, which is no basis for a sleep. */
export const NEEDED = 1000
const SHARE = 0.999

/** The sleep that would have covered 99.9 % of some drains, in ms. */
export interface Sleep {
  /** How many drains the result rests on: drains with a sync lag, and drains that were not proved. */
  readonly drains: number
  /** `null` with too few drains. `null` with `enough` drains: more than 0.1 % were not proved, so no sleep is known to suffice. */
  readonly ms: number | null
  readonly enough: boolean
  /** The longest lag; `null` if no drain has a lag. */
  readonly longestMs: number | null
}

/** @param unproved how many drains had no lag, because a gateway did not confirm before the deadline */
export function sleepOf(lags: readonly number[], unproved: number): Sleep {
  const sorted = lags.toSorted((a, b) => a - b)
  const drains = lags.length + unproved
  const enough = drains >= NEEDED
  return {
    drains,
    enough,
    ms: enough ? (sorted[Math.ceil(drains * SHARE) - 1] ?? null) : null,
    longestMs: sorted.at(-1) ?? null
  }
}

/** How much sooner pods were gone than with a sleep in place of their hook. */
export interface Sooner {
  /** The saved share of the time from the decision to the end of the pod, 0 to 1; negative if hooks took longer. `null` without drains. */
  readonly share: number | null
  /** How much sooner each hook would have been answered, in ms, if its pod said that no other traffic needs its sleep (`only-apisix`). */
  readonly onlyApisixMs: number
}

/** Compares only drains that are over and whose hook was answered. */
export function soonerOf(drains: readonly DrainView[], sleepMs: number): Sooner {
  const sum = { drains: 0, took: 0, slept: 0, covered: 0 }
  for (const { moments, verdict } of drains) {
    const { hookAt, ackAt, goneAt, confirmedAt } = moments
    if (hookAt === null || ackAt === null || goneAt === null) continue
    const ms = goneAt - latestDecision(moments)
    sum.drains += 1
    sum.took += ms
    sum.slept += ms + sleepMs - (ackAt - hookAt)
    // After the proof only the least time that the hook names holds it (`earliestOf` in rules/drain/answer.ts).
    if (verdict?.grade === 'barrier' && confirmedAt !== null)
      sum.covered += Math.max(0, ackAt - Math.max(hookAt, confirmedAt))
  }
  return {
    share: sum.slept > 0 ? 1 - sum.took / sum.slept : null,
    onlyApisixMs: sum.drains > 0 ? sum.covered / sum.drains : 0
  }
}

export interface Worth extends Sleep, Sooner {
  readonly workload: string
}

/** The result for all drains together, then for each workload. Workloads with the most drains come first. */
export function worthOf({
  lags,
  past,
  unproved,
  agent: { sleepMs }
}: Pick<Snapshot, 'lags' | 'past' | 'unproved' | 'agent'>): readonly Worth[] {
  const nameOf = ({ owner, namespace }: Pick<DrainView, 'owner' | 'namespace'>) =>
    workloadOf(owner, namespace)
  const failed = unproved.filter(drain => standingOf(drain) === 'unproved')
  const [lagsBy, failedBy, pastBy] = [
    Map.groupBy(lags, nameOf),
    Map.groupBy(failed, nameOf),
    Map.groupBy(past, nameOf)
  ]
  const each = [...new Set([...lagsBy.keys(), ...failedBy.keys(), ...pastBy.keys()])].map(workload => ({
    workload,
    ...sleepOf(
      (lagsBy.get(workload) ?? []).map(({ ms }) => ms),
      failedBy.get(workload)?.length ?? 0
    ),
    ...soonerOf(pastBy.get(workload) ?? [], sleepMs)
  }))
  const sleep = sleepOf(
    lags.map(({ ms }) => ms),
    failed.length
  )
  const all = { workload: 'all workloads', ...sleep, ...soonerOf(past, sleepMs) }
  return [all, ...each.sort((a, b) => b.drains - a.drains)]
}

/** The counted decisions of the plugin, summed over all gateways; `null` if no gateway has the plugin. */
export function decidedBy(gateways: readonly Pick<GatewayView, 'counts'>[]): GatewayView['counts'] {
  const counted = gateways.flatMap(({ counts }) => counts ?? [])
  if (counted.length === 0) return null
  const sum = (name: keyof NonNullable<GatewayView['counts']>) =>
    counted.reduce((total, counts) => total + counts[name], 0)
  return {
    moved: sum('moved'),
    succeeded: sum('succeeded'),
    refused: sum('refused'),
    bypasses: sum('bypasses')
  }
}
