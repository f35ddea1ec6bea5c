import type { Config } from '../../config/config.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import { DECISIONS, EVIDENCE, KEPT_REASONS, PHASES } from '../metrics/metric-registry.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Loop } from '../../round/loop.ts'
import type { HolderClock } from '../behind/differences.ts'
import { gatewayView, holdersOnSuccessors } from './build-snapshot.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { Observer } from '../../round/gather/drain-status.ts'

interface BehindNow {
  readonly clocks: Iterable<HolderClock>
  readonly unsealed: readonly { readonly gateway: string; readonly since: Millis }[]
  readonly gateways: readonly GatewayFact[]
  readonly now: Millis
}

/** How long owners and gateways have been behind Kubernetes: the age of the oldest change that each one lacks. */
export function behindGauges(
  { ownerBehind, gatewayBehind }: Metrics,
  { clocks, unsealed, gateways, now }: BehindNow
): void {
  let owner = now
  const oldest = new Map<string, Millis>()
  const late = ({ gateway, since }: BehindNow['unsealed'][number]) =>
    oldest.set(gateway, Math.min(since, oldest.get(gateway) ?? now))
  for (const clock of clocks) {
    owner = Math.min(owner, clock.behind?.owner ?? now)
    clock.behind?.gateways.forEach(late)
  }
  unsealed.forEach(late)
  ownerBehind.set((now - owner) / 1000)
  gatewayBehind.reset()
  for (const { name: gateway } of gateways)
    gatewayBehind.set({ gateway }, (now - (oldest.get(gateway) ?? now)) / 1000)
}

/** For how long holders have depended on successors. */
function successionGauges(
  { successionAge }: Pick<Metrics, 'successionAge'>,
  holders: ReadonlyMap<HolderKey, { readonly since: Millis; readonly nodes: readonly unknown[] }>,
  now: Millis
): void {
  const oldest = holders
    .values()
    .reduce((least, { since, nodes }) => (nodes.length > 0 ? Math.min(least, since) : least), now)
  successionAge.set((now - oldest) / 1000)
}

/** For each gateway, when it last answered, and whether its barrier can be used. */
function gatewayGauges(
  { gatewayNames, gatewaySuccess, gatewayUnfit, gatewayEvidence }: Metrics,
  { sources, control }: Pick<State, 'sources' | 'control'>
): void {
  const { cluster, probe, barrier } = sources
  const gateways = cluster.gateways()
  gatewayNames.keep(gateways.map(({ name }) => name))
  gatewaySuccess.reset()
  gatewayUnfit.reset()
  for (const evidence of EVIDENCE) gatewayEvidence.set({ evidence }, 0)
  // A gateway that never answered has the time 0.
  const answered = (api: string, gateway: string, at: Millis | null | undefined) =>
    gatewaySuccess.set({ api, gateway }, (at ?? 0) / 1000)
  for (const one of gateways) {
    const { available } = gatewayView(one, sources, control)
    gatewayEvidence.inc({ evidence: available ?? 'none' })
    if (!one.ready) continue
    const gateway = one.name
    if (probe) answered('control', gateway, probe.freshness(one.id)?.lastSuccessAt)
    if (!barrier) continue
    answered('barrier', gateway, barrier.state(one.id)?.lastSuccessAt)
    gatewayUnfit.set({ gateway }, Number(available !== 'barrier'))
  }
}

/** The plugin's counts of each gateway. The gateway has the count, and a restart begins it anew, as Prometheus expects of a counter. */
function pluginCounts(
  { pluginRequests }: Pick<Metrics, 'pluginRequests'>,
  { cluster, barrier }: Pick<State['sources'], 'cluster' | 'barrier'>
): void {
  pluginRequests.reset()
  for (const { id, name: gateway } of cluster.gateways()) {
    const status = barrier?.state(id)?.status
    if (!status) continue
    const { moved, succeeded, refused, bypasses, errors } = status.counts
    const counts = { moved, succeeded, refused, bypassed: bypasses, late: status.held.late, error: errors }
    for (const decision of DECISIONS) pluginRequests.inc({ gateway, decision }, counts[decision] ?? 0)
  }
}

interface State {
  readonly sources: Sources
  readonly control: Config['apisix']['control']
  readonly loop: Pick<Loop, 'drains' | 'status' | 'lastPlan'>
  readonly now: Millis
}

/** The present state of drains, gateways, holders and watches. */
export function stateGauges(metrics: Metrics, { sources, control, loop, now }: State): void {
  const drains = [...loop.drains().values()]
  gatewayGauges(metrics, { sources, control })
  pluginCounts(metrics, sources)
  successionGauges(
    metrics,
    holdersOnSuccessors(drains, uid => loop.status(uid), sources.inventory),
    now
  )
  for (const phase of PHASES) metrics.drains.set({ phase }, drains.filter(d => d.phase === phase).length)
  const gateways = sources.cluster.gateways()
  for (const ready of [true, false]) {
    metrics.gatewayKnown.set({ ready: String(ready) }, gateways.filter(g => g.ready === ready).length)
  }
  inventoryGauges(metrics, sources, loop)
  watchGauges(metrics, sources.cluster)
}

function inventoryGauges(metrics: Metrics, { inventory }: State['sources'], loop: State['loop']): void {
  const readAt = inventory.readAt()
  if (readAt !== undefined) metrics.inventorySuccess.set(readAt / 1000)
  for (const why of KEPT_REASONS) metrics.inventoryKept.set({ why }, 0)
  for (const { why } of loop.lastPlan().kept) metrics.inventoryKept.inc({ why })
}

function watchGauges(metrics: Metrics, cluster: State['sources']['cluster']): void {
  for (const { name: kind, state, counters } of cluster.parts()) {
    const counted = [
      [metrics.watchFailures, counters.failures],
      [metrics.watchSilences, counters.silences]
    ] as const
    for (const [counter, count] of counted) {
      // The watch has the count; a counter can only be reset and raised to it.
      counter.remove({ kind })
      counter.inc({ kind }, count)
    }
    for (const other of ['connecting', 'live', 'stale'] as const) {
      metrics.watchState.set({ kind, state: other }, Number(other === state))
    }
  }
}

/** The most drains that are followed. The oldest, which are long gone, are forgotten first. */
const MOST = 1000

interface Followed {
  /** By gateway: the count before the ack. */
  readonly before: ReadonlyMap<string, number>
  readonly since: Map<string, number>
}

/**
 * Checks the promise: counts requests that a gateway sent to a pod after its hook was answered on the evidence of the barrier. The
 * plugin counts all requests that are sent to a sealed node. Those counted before the ack are subtracted, because the drain waited
 * for them.
 */
export function createAfterAck(
  { cluster, barrier }: Pick<Sources, 'cluster' | 'barrier'>,
  { afterAck, gatewayNames }: Pick<Metrics, 'afterAck' | 'gatewayNames'>
) {
  const followed = new Map<PodUid, Followed>()
  const lateAt = (id: string): ReadonlyMap<string, number> => {
    const late = new Map<string, number>()
    for (const { uid, late: n } of barrier?.state(id)?.status?.entries ?? [])
      late.set(uid, (late.get(uid) ?? 0) + n)
    return late
  }

  const observer: Observer = {
    ack({ evidence }, drain) {
      if (!drain || evidence !== 'barrier' || followed.has(drain.uid)) return
      const before = cluster
        .gateways()
        .map(({ id }) => [id, barrier?.reading(drain.uid, id)?.late ?? 0] as const)
      followed.set(drain.uid, { before: new Map(before), since: new Map() })
      const [oldest] = followed.keys()
      if (followed.size > MOST && oldest !== undefined) followed.delete(oldest)
    },
    round() {
      for (const { id, name } of cluster.gateways()) {
        for (const [uid, late] of lateAt(id)) {
          const one = followed.get(uid as PodUid)
          const now = late - (one?.before.get(id) ?? 0)
          const known = one?.since.get(id) ?? 0
          if (!one || now <= known) continue
          one.since.set(id, now)
          afterAck.inc({ gateway: gatewayNames.labelOf(name) }, now - known)
        }
      }
    }
  }
  return {
    observer,
    /** `undefined` if nothing is counted: no ack yet, or its evidence is not `barrier`. */
    of(uid: PodUid): number | undefined {
      const one = followed.get(uid)
      return one && [...one.since.values()].reduce((sum, n) => sum + n, 0)
    }
  }
}
