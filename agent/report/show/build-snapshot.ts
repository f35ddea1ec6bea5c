import type { Config } from '../../config/config.ts'
import type { Leadership } from '../../kubernetes/lead/elector.ts'
import type { Drain, Witness } from '../../rules/drain/drain.ts'
import { deepFreeze } from '../../config/load.ts'
import {
  SNAPSHOT_VERSION,
  type GatewayView,
  type Reach,
  type Snapshot,
  type SnapshotSources
} from '../snapshot/snapshot.ts'
import type { DrainMore, DrainView, Moments } from '../snapshot/drain-view.ts'

/**
 * The sources as one frozen value in the form of JSON. It freezes its input and copies nothing, so a holder that did not change
 * since the last round costs nothing.
 */
export function buildSnapshot(sources: SnapshotSources): Snapshot {
  const gateways = sources.gateways.map(gatewayView)
  return deepFreeze({
    version: SNAPSHOT_VERSION,
    at: sources.now,
    agent: sources.agent,
    watches: sources.watches,
    gateways,
    inventory: { ...sources.inventory },
    holders: sources.holders,
    hidden: sources.hidden,
    drains: [...sources.drains].map(drain =>
      drainView(
        drain,
        sources.moments.get(drain.uid),
        sources.hooks.get(drain.uid) ?? 0,
        sources.more(drain.uid)
      )
    ),
    past: sources.history.past,
    unproved: sources.history.unproved,
    acks: sources.history.acks,
    lags: sources.history.lags,
    arrivals: sources.arrivals,
    totals: { ...sources.totals }
  })
}

function gatewayView({ gateway, ...rest }: SnapshotSources['gateways'][number]): GatewayView {
  return { ...gateway, ...rest, host: gateway.host ?? null }
}

/** The view of one drain, during and after it. */
export function drainView(
  drain: Drain,
  moments: Moments | undefined,
  hooks: number,
  more: DrainMore = { removedAt: () => undefined, afterAck: undefined, unlisted: false }
): DrainView {
  const { pod } = drain
  const verdict = drain.phase === 'undone' ? undefined : drain.verdict
  return {
    uid: drain.uid,
    namespace: pod.namespace,
    pod: pod.name,
    owner: pod.owner ?? null,
    ips: pod.ips,
    phase: drain.phase,
    witnesses: drain.witnesses,
    deadline: drain.deadline,
    moments: moments ?? momentsOfWitnesses(drain),
    verdict: verdict
      ? {
          kind: verdict.kind,
          grade: verdict.kind === 'proven' ? verdict.grade : null,
          places: verdict.kind === 'proven' ? (verdict.places ?? null) : null,
          lastEndpoint: verdict.kind === 'waiting' && verdict.lastEndpoint
        }
      : null,
    unlisted: more.unlisted,
    why: drain.phase === 'undone' ? drain.why : drain.verdict.why,
    longLived: verdict?.longLived ?? null,
    gateways: verdict?.gateways ?? [],
    holders: (verdict?.holders ?? []).map(holder => ({ ...holder, at: more.removedAt(holder.key) ?? null })),
    afterAck: more.afterAck ?? null,
    hooks
  }
}

function momentsOfWitnesses(drain: Drain): Moments {
  const at = (witness: Witness) => drain.witnesses[witness] ?? null
  return {
    decidedAt: drain.decidedAt ?? null,
    seenAt: drain.since,
    hookAt: at('hook'),
    sliceAt: null,
    acceptedAt: null,
    sealedAt: null,
    confirmedAt: null,
    idleAt: null,
    ackAt: null,
    goneAt: drain.phase === 'gone' ? drain.at : at('deleted')
  }
}

/** Where the agent asks for evidence, for display. */
export function reachOf({ apisix: { admin, control, barrier } }: Config): Reach {
  return {
    admin: admin.url,
    control: control.enabled ? { port: control.port } : null,
    barrier: barrier ? { scheme: barrier.scheme, port: barrier.port } : null
  }
}

/** Who leads, as the page shows it. */
export const leaderView = ({ leads, holder, lease, why }: Leadership): Snapshot['agent']['leader'] => ({
  leads,
  holder: holder ?? null,
  lease: lease ?? null,
  why
})
