import type { Metrics } from '../tell/metrics.ts'
import type { DriftCount } from './drift.ts'
import type { Sources } from '../proof/sources.ts'

/** How far EndpointSlices, Admin API and gateways are apart. */
export function driftGauges(
  { drift, driftAge }: Pick<Metrics, 'drift' | 'driftAge'>,
  counts: readonly DriftCount[]
): void {
  for (const { where, kind, nodes, oldestMs } of counts) {
    drift.set({ where, kind }, nodes)
    driftAge.set({ where, kind }, oldestMs / 1000)
  }
}

/** The age of the oldest answer of a gateway, per interface. A gateway that never answered counts as 1970. */
export function freshnessGauges(
  { gatewaySuccess }: Pick<Metrics, 'gatewaySuccess'>,
  { cluster, survey, barrier }: Pick<Sources, 'cluster' | 'survey' | 'barrier'>
): void {
  const ready = cluster.gateways().filter(gateway => gateway.ready)
  const oldest = (api: string, of: (id: string) => number | undefined) => {
    if (ready.length > 0) gatewaySuccess.set({ api }, Math.min(...ready.map(({ id }) => of(id) ?? 0)) / 1000)
    else gatewaySuccess.remove({ api })
  }
  if (survey) oldest('control', id => survey.sighting(id)?.beganAt)
  if (barrier) oldest('barrier', id => barrier.state(id)?.lastSuccessAt)
}
