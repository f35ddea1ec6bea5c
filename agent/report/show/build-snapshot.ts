import type { Config } from '../../config/config.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import { type Reach, type GatewayView, type PluginCounts, type HolderView } from '../snapshot/snapshot.ts'
import { momentsOf, type DrainView } from '../snapshot/drain-view.ts'
import type { Freshness, GatewayState } from '../../gateway/barrier/gateway-state.ts'
import { type GatewayFact, type Millis, type NodeKey, type PodUid, latest } from '../../rules/drain/facts.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import { type HolderKey, isEnding } from '../../rules/plan/holder.ts'
import { isRiskless, type Status } from '../../round/gather/drain-status.ts'

/** Facts about a drain that are not in the drain or its status. */
interface DrainMore {
  /** Hooks of this pod that this agent holds. */
  readonly hooks?: number | undefined
  /** When another agent answered its hook. */
  readonly ackAt?: Millis | undefined
  readonly afterAck?: number | undefined
}

/** The view of one drain, during and after it. */
export function drainView(
  drain: Drain,
  status: Status,
  { hooks = 0, ackAt, afterAck }: DrainMore = {}
): DrainView {
  const { pod } = drain
  const places = [...status.places.values()]
  const moments = momentsOf(drain, status)
  const verdict = drain.phase === 'undone' ? undefined : drain.verdict
  return {
    uid: drain.uid,
    namespace: pod.namespace,
    pod: pod.name,
    owner: pod.owner ?? null,
    ips: pod.ips,
    phase: drain.phase,
    deadline: drain.deadline,
    moments: { ...moments, ackAt: moments.ackAt ?? ackAt ?? null },
    verdict: verdict
      ? {
          kind: verdict.kind,
          grade: verdict.kind === 'proven' ? verdict.grade : null,
          places: verdict.kind === 'proven' ? (verdict.places ?? null) : null,
          lastEndpoint: verdict.kind === 'waiting' && verdict.lastEndpoint
        }
      : null,
    unlisted: isRiskless(status),
    why: drain.phase === 'undone' ? drain.why : drain.verdict.why,
    longLived: verdict?.longLived ?? null,
    gateways: verdict?.gateways ?? [],
    holders: (verdict?.holders ?? []).map(one => ({
      ...one,
      at: latest(places.filter(({ holder }) => holder.key === one.key).map(place => place.removedAt)) ?? null
    })),
    afterAck: afterAck ?? null,
    hooks
  }
}

/** Where the agent asks for evidence, for display. */
export function reachOf({ apisix: { admin, control, barrier } }: Config): Reach {
  return {
    admin: admin?.url ?? '',
    control: control.enabled ? { port: control.port } : null,
    barrier: barrier ? { scheme: barrier.scheme, port: barrier.port } : null
  }
}

/** The evidence that a gateway can give now, or why it can give none. */
export function gatewayView(
  gateway: GatewayFact,
  { barrier, probe }: Pick<Sources, 'barrier' | 'probe'>,
  control: Config['apisix']['control']
): GatewayView {
  const state = barrier?.state(gateway.id)
  const doubt = barrier?.doubt(gateway.id) ?? ''
  const fit = state?.status?.fit === true && state.problem === '' && doubt === ''
  const unfit = [doubt, ...(state?.status?.unfit ?? [])].filter(why => why !== '').join(', ')
  const read = probe?.freshness(gateway.id)
  const canObserve = !barrier && control.enabled && !read?.problem
  return {
    ...gateway,
    host: gateway.host ?? null,
    available: fit ? 'barrier' : canObserve ? 'observed' : null,
    why: fit
      ? ''
      : barrier
        ? state?.problem || unfit || 'its barrier was not read yet'
        : 'no barrier is configured',
    control: read ? freshness(read) : null,
    barrier: state ? freshness({ ...state, problem: state.problem || unfit }) : null,
    plugin: state?.status?.plugin ?? null,
    counts: state?.status ? countsOf(state.status) : null,
    workers: (state?.status?.workers ?? []).map(worker => ({
      id: worker.id ?? -1,
      revision: worker.revision ?? 0,
      appliedAt: worker.applied ? worker.applied * 1000 : null
    }))
  }
}

const freshness = ({ lastSuccessAt, lastAttemptAt, problem }: Freshness): GatewayView['control'] => ({
  lastSuccessAt: lastSuccessAt ?? null,
  lastAttemptAt: lastAttemptAt ?? null,
  problem
})

const countsOf = ({ counts }: NonNullable<GatewayState['status']>): PluginCounts => {
  const { moved, succeeded, refused, bypasses } = counts
  return { moved, succeeded, refused, bypasses }
}

type OnSuccessors = NonNullable<HolderView['onSuccessors']>

/**
 * The holders without a node that serves: every node that would get requests there is to be sealed. Its entry may name successors
 * that the owner has not listed yet. Discovery is left out, because no listing has its nodes.
 */
export function holdersOnSuccessors(
  drains: readonly Drain[],
  status: (uid: PodUid) => Status,
  inventory: Pick<Inventory, 'holders'>
): ReadonlyMap<HolderKey, OnSuccessors> {
  const sealed = new Map<HolderKey, Map<NodeKey, OnSuccessors>>()
  for (const drain of drains) {
    const { places, successors, sealing } = status(drain.uid)
    const nodes = [...new Set(Object.values(successors).flat())]
    if (!isEnding(drain) || (drain.phase === 'draining' && !sealing)) continue
    for (const { holder, node, removedAt } of places.values()) {
      if (removedAt !== undefined) continue
      const known = sealed.get(holder.key) ?? new Map<NodeKey, OnSuccessors>()
      sealed.set(holder.key, known.set(node, { since: drain.since, nodes }))
    }
  }
  return new Map(
    [...sealed].flatMap(([key, known]) => {
      const listed = inventory.holders().get(key)?.nodes ?? []
      const chosen = listed.some(({ weight }) => weight > 0)
        ? listed.filter(({ weight }) => weight > 0)
        : listed
      const found = chosen.map(node => known.get(node.key)).filter(one => one !== undefined)
      if (found.length === 0 || found.length < chosen.length) return []
      return [
        [key, { since: sinceWhen(found), nodes: [...new Set(found.flatMap(({ nodes }) => nodes))].sort() }]
      ]
    })
  )
}

/** When the last pod that the place lists began to end. */
const sinceWhen = (found: readonly OnSuccessors[]): Millis => Math.max(...found.map(({ since }) => since))
