import type { Config } from '../../config/config.ts'
import type { GatewayFact, Millis } from '../../rules/drain/facts.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import { OTHER } from '../metrics/gateway-names.ts'
import { DECISIONS, EVIDENCE, KEPT_REASONS, PHASES } from '../metrics/metric-labels.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Loop } from '../../round/loop.ts'
import type { UpkeepParts } from '../../upkeep/upkeep.ts'
import type { HolderClock } from '../behind/holder-clock.ts'
import { gatewayView } from './gateway-view.ts'
import { holdersOnSuccessors } from './succession-view.ts'
import type { Sources } from '../../round/gather/sources.ts'

interface BehindNow {
  readonly clocks: Iterable<HolderClock>
  readonly unsealed: readonly { readonly gateway: string; readonly since: Millis }[]
  readonly gateways: readonly GatewayFact[]
  readonly now: Millis
}

/** How long owners and gateways have been behind Kubernetes: the age of the oldest change that each one lacks. */
export function behindGauges(
  { ownerBehind, gatewayBehind, gatewayNames }: Metrics,
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
  const worst = new Map<string, number>()
  for (const { name } of gateways) {
    const label = gatewayNames.labelOf(name)
    const ms = now - (oldest.get(name) ?? now)
    worst.set(label, Math.max(ms, worst.get(label) ?? 0))
  }
  for (const [gateway, ms] of worst) gatewayBehind.set({ gateway }, ms / 1000)
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

/** For each gateway, when it last answered, and whether its barrier can be used. The worst gateway of a label counts. */
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
  const oldest = new Map<string, number>()
  const answered = (api: string, gateway: string, at: number = 0) => {
    // A gateway that never answered has the time 0.
    const worst = Math.min(at, oldest.get(`${api} ${gateway}`) ?? Infinity)
    oldest.set(`${api} ${gateway}`, worst)
    gatewaySuccess.set({ api, gateway }, worst / 1000)
  }
  const unfit = new Set<string>()
  for (const one of gateways) {
    const { available } = gatewayView(one, sources, control)
    gatewayEvidence.inc({ evidence: available ?? 'none' })
    if (!one.ready) continue
    const gateway = gatewayNames.labelOf(one.name)
    if (probe) answered('control', gateway, probe.freshness(one.id)?.lastSuccessAt ?? 0)
    if (!barrier) continue
    answered('barrier', gateway, barrier.state(one.id)?.lastSuccessAt)
    if (available !== 'barrier') unfit.add(gateway)
    gatewayUnfit.set({ gateway }, Number(unfit.has(gateway)))
  }
}

/** The plugin's counts of each gateway. The gateway has the count, and a restart begins it anew, as Prometheus expects of a counter. */
function pluginCounts(
  { gatewayNames, pluginRequests }: Pick<Metrics, 'gatewayNames' | 'pluginRequests'>,
  { cluster, barrier }: Pick<State['sources'], 'cluster' | 'barrier'>
): void {
  pluginRequests.reset()
  for (const { id, name } of cluster.gateways()) {
    const told = barrier?.state(id)?.told
    const gateway = gatewayNames.labelOf(name)
    // A sum would fall when one of several gateways leaves, which looks like a restart.
    if (!told || gateway === OTHER) continue
    const { moved, succeeded, refused, bypasses, errors } = told.counts
    const counts = {
      moved,
      succeeded,
      refused,
      bypassed: bypasses,
      late: told.held.late,
      error: errors
    }
    for (const decision of DECISIONS) pluginRequests.inc({ gateway, decision }, counts[decision] ?? 0)
  }
}

interface State {
  readonly sources: Sources & UpkeepParts
  readonly control: Config['apisix']['control']
  readonly loop: Pick<Loop, 'drains' | 'memory' | 'lastPlan'>
  readonly now: Millis
}

/** The present state of drains, gateways, holders and watches. */
export function stateGauges(metrics: Metrics, { sources, control, loop, now }: State): void {
  const drains = [...loop.drains().values()]
  gatewayGauges(metrics, { sources, control })
  pluginCounts(metrics, sources)
  successionGauges(
    metrics,
    holdersOnSuccessors(drains, uid => loop.memory(uid), sources.inventory),
    now
  )
  metrics.leader.set(Number(sources.leader.leads()))
  for (const phase of PHASES) metrics.drains.set({ phase }, drains.filter(d => d.phase === phase).length)
  const gateways = sources.cluster.gateways()
  for (const ready of [true, false]) {
    metrics.gatewayKnown.set({ ready: String(ready) }, gateways.filter(g => g.ready === ready).length)
  }
  inventoryGauges(metrics, sources, loop)
  watchGauges(metrics, sources.cluster)
}

function inventoryGauges(metrics: Metrics, { inventory, sync }: State['sources'], loop: State['loop']): void {
  const readAt = inventory.readAt()
  if (readAt !== undefined) metrics.inventorySuccess.set(readAt / 1000)
  metrics.syncProblems.set(sync?.counts().problems ?? 0)
  for (const why of KEPT_REASONS) metrics.inventoryKept.set({ why }, 0)
  for (const { why } of loop.lastPlan().kept) metrics.inventoryKept.inc({ why })
}

function watchGauges(metrics: Metrics, cluster: State['sources']['cluster']): void {
  for (const { name: kind, state, objects, counters } of cluster.parts()) {
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
    metrics.watchObjects.set({ kind }, objects)
  }
}
