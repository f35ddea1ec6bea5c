import type { GatewayView, Snapshot } from '../../report/snapshot/snapshot.ts'
import { workloadOf } from './lanes.ts'

/** What the drains of one workload say about the sleep in place of its hook. */
export interface Worth {
  readonly workload: string
  /** How many drains had a sync lag, and the longest lag in ms; `null` without drains. */
  readonly drains: number
  readonly longestMs: number | null
  /** How much sooner each hook would have been answered, in ms, if its pod said that no other traffic needs its sleep (`only-apisix`). */
  readonly onlyApisixMs: number
}

/** The result for all drains together, then for each workload. Workloads with the most drains come first. */
export function worthOf({ lags, past }: Pick<Snapshot, 'lags' | 'past'>): readonly Worth[] {
  const nameOf = ({ owner, namespace }: { readonly owner: string | null; readonly namespace: string }) =>
    workloadOf(owner, namespace)
  const [lagsBy, pastBy] = [Map.groupBy(lags, nameOf), Map.groupBy(past, nameOf)]
  const each = [...new Set([...lagsBy.keys(), ...pastBy.keys()])].map(workload =>
    worthBy(workload, lagsBy.get(workload) ?? [], pastBy.get(workload) ?? [])
  )
  return [worthBy('all workloads', lags, past), ...each.sort((a, b) => b.drains - a.drains)]
}

function worthBy(workload: string, lags: Snapshot['lags'], past: Snapshot['past']): Worth {
  const covered = past.flatMap(({ moments: { hookAt, ackAt, goneAt, confirmedAt }, verdict }) => {
    if (hookAt === null || ackAt === null || goneAt === null) return []
    // After the proof only the least time that the hook names holds it (`earliestOf` in rules/drain/answer.ts).
    const isProved = verdict?.grade === 'barrier' && confirmedAt !== null
    return [isProved ? Math.max(0, ackAt - Math.max(hookAt, confirmedAt)) : 0]
  })
  return {
    workload,
    drains: lags.length,
    longestMs: lags.length > 0 ? Math.max(...lags.map(({ ms }) => ms)) : null,
    onlyApisixMs: covered.reduce((sum, ms) => sum + ms, 0) / Math.max(1, covered.length)
  }
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
