import { type GatewayFact, type Millis, latest } from '../../rules/drain/facts.ts'
import { observable } from '../../gateway/apisix/control-api.ts'
import { type GatewayHas, slowestOf } from '../../rules/members/behind.ts'
import type { Holder, Resource } from '../../rules/plan/holder.ts'
import type { Sources } from './sources.ts'
import type { Clock } from '../../base/clock.ts'
import { gatewayEndsAt, type Heard } from '../../rules/proof/observed.ts'
import type { Log } from '../../base/log.ts'

/** Only gateways that get requests must have the latest revision. */
const serves = ({ ready, terminating }: GatewayFact): boolean => ready && !terminating

export const servingNames = (gateways: readonly GatewayFact[]): readonly string[] =>
  gateways.filter(serves).map(({ name }) => name)

/** The revision up to which the slowest worker of a gateway has applied one kind of object, and since when. */
interface Applied {
  readonly revision: number
  readonly at: Millis
  /** When the agent last asked. If that failed, the report is older. */
  readonly askedAt: Millis
  readonly problem: string
}

/**
 * Whether each serving gateway has a holder's revision: by its workers' reports, else by the last read of its Control API. A gateway that
 * can show neither is left out. A report from before `wroteAt` cannot show that a gateway lacks the revision. Revisions come from etcd, so
 * in standalone mode only the Control API counts.
 */
export function gatewaysHave(
  { barrier, probe, mode }: Pick<Sources, 'barrier' | 'probe' | 'mode'>,
  gateways: readonly GatewayFact[]
): (holder: Holder, wroteAt: Millis) => readonly GatewayHas[] {
  const hasRevisions = mode.current().mode === 'etcd'
  const cache = new Map<string, Applied | undefined>()

  const appliedBy = (id: string, kind: Resource): Applied | undefined => {
    const state = hasRevisions ? barrier?.state(id) : undefined
    const workers = (state?.told?.workers ?? []).filter(({ exiting }) => exiting !== true)
    if (!state || workers.length === 0 || state.lastSuccessAt === undefined) return undefined
    const { lastSuccessAt, aheadMs } = state
    const at = workers.map(({ applied }) =>
      applied ? Math.min(applied * 1000 - aheadMs, lastSuccessAt) : lastSuccessAt
    )
    return {
      revision: slowestOf(workers, kind),
      at: latest(at) ?? lastSuccessAt,
      askedAt: state.lastAttemptAt ?? lastSuccessAt,
      problem: state.problem
    }
  }

  const byWorkers = (name: string, one: Applied, revision: number, wroteAt: Millis): GatewayHas => {
    const evidence = 'barrier'
    if (one.revision >= revision) return { name, has: true, at: one.at, evidence, why: '' }
    if (one.askedAt < wroteAt) return { name, has: undefined, at: undefined, evidence, why: '' }
    const why =
      one.problem === ''
        ? `a worker has applied revision ${one.revision}, and not ${revision}`
        : `it does not answer, and had applied revision ${one.revision} before`
    return { name, has: false, at: undefined, evidence, why }
  }

  const byReading = (id: string, name: string, holder: Holder, wroteAt: Millis): GatewayHas => {
    const sighting = probe?.sighting(id)
    const evidence = 'observed'
    if (!sighting || sighting.beganAt <= wroteAt)
      return { name, has: undefined, at: undefined, evidence, why: '' }
    const there = new Set(sighting.holders.get(holder.key))
    const isSame = there.size === holder.nodes.length && holder.nodes.every(({ key }) => there.has(key))
    if (isSame) return { name, has: true, at: sighting.beganAt, evidence, why: '' }
    return { name, has: false, at: undefined, evidence, why: 'its Control API lists other nodes' }
  }

  const serving = gateways.filter(serves)
  return (holder, wroteAt) =>
    serving.flatMap(({ id, name }) => {
      const place = `${id} ${holder.resource}`
      if (!cache.has(place)) cache.set(place, appliedBy(id, holder.resource))
      const applied = holder.revision > 0 ? cache.get(place) : undefined
      if (applied) return [byWorkers(name, applied, holder.revision, wroteAt)]
      return probe && observable(holder) ? [byReading(id, name, holder, wroteAt)] : []
    })
}

/** How often gateways are checked without an event, in ms: a silent gateway ends by time alone. */
const LOOK_MS = 1000

/** Removes gateways that are not Ready, or vanished, from the list as soon as they can route no request. Returns a function that stops the checks. */
export function watchVanished(
  { cluster, barrier, probe }: Pick<Sources, 'cluster' | 'barrier' | 'probe'>,
  clock: Clock,
  log: Log
): () => void {
  const heard = (id: string): Heard[] => {
    const state = barrier?.state(id)
    const read = probe?.freshness(id)
    const control = {
      lastSuccessAt: read?.lastSuccessAt ?? undefined,
      lastAttemptAt: read?.lastAttemptAt ?? undefined,
      refused: read?.refused ?? false
    }
    return state ? [state, control] : [control]
  }
  const look = (): void => {
    for (const gateway of cluster.gateways()) {
      if (gatewayEndsAt(gateway, heard(gateway.id)) > clock.now()) continue
      log.info({ gateway: gateway.name }, 'a gateway that is not Ready can route no request any more')
      cluster.gatewayEnded(gateway.id)
    }
  }
  let cancel = () => {}
  const schedule = (): void => {
    cancel = clock.alarm(clock.now() + LOOK_MS, () => {
      look()
      schedule()
    })
  }
  schedule()
  const ends = [probe, barrier].flatMap(part => part?.onChange(look) ?? [])
  return () => {
    cancel()
    for (const end of ends) end()
  }
}
