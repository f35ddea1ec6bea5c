import type { Config } from '../../config/config.ts'
import type { BarrierGateway } from '../../gateway/apisix/barrier-wire.ts'
import { slowestOf } from '../../rules/members/applied.ts'
import type { GatewayFact } from '../../rules/drain/facts.ts'
import type { PluginCounts, SnapshotSources } from '../snapshot/snapshot.ts'
import type { Sources } from '../../round/gather/sources.ts'

/** The evidence that a gateway can give now, or why it can give none. */
export function gatewayView(
  gateway: GatewayFact,
  { barrier, probe }: Pick<Sources, 'barrier' | 'probe'>,
  control: Config['apisix']['control']
): SnapshotSources['gateways'][number] {
  const state = barrier?.state(gateway.id)
  const doubt = barrier?.doubt(gateway.id) ?? ''
  const fit = state?.told?.fit === true && state.problem === '' && doubt === ''
  const unfit = [doubt, ...(state?.told?.unfit ?? [])].filter(why => why !== '').join(', ')
  const read = probe?.freshness(gateway.id)
  const canObserve = !barrier && control.enabled && !read?.problem
  return {
    gateway,
    available: fit ? 'barrier' : canObserve ? 'observed' : null,
    why: fit
      ? ''
      : barrier
        ? state?.problem || unfit || 'its barrier was not read yet'
        : 'no barrier is configured',
    control: read ?? null,
    barrier: state
      ? {
          lastSuccessAt: state.lastSuccessAt ?? null,
          lastAttemptAt: state.lastAttemptAt ?? null,
          problem: state.problem || unfit
        }
      : null,
    instance: state?.told?.instance ?? null,
    plugin: state?.told?.plugin ?? null,
    counts: state?.told ? countsOf(state.told) : null,
    workers: (state?.told?.workers ?? []).map(worker => ({
      id: worker.id ?? -1,
      revision: worker.revision ?? 0,
      appliedAt: worker.applied ? worker.applied * 1000 : null
    })),
    applied: appliedIn(state?.told?.workers ?? [])
  }
}

const countsOf = ({ counts }: BarrierGateway): PluginCounts => {
  const { moved, succeeded, refused, bypasses } = counts
  return { moved, succeeded, refused, bypasses }
}

/** By kind of object, the revision of the slowest worker that serves. */
function appliedIn(workers: BarrierGateway['workers']): Readonly<Record<string, number>> {
  const serving = workers.filter(({ exiting }) => exiting !== true)
  const kinds = new Set(serving.flatMap(({ revisions }) => Object.keys(revisions)))
  return Object.fromEntries([...kinds].map(kind => [kind, slowestOf(serving, kind)]))
}
