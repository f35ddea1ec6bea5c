import { type BarrierReading, type Evidence, LOAD_IT } from '../../rules/proof/verdict.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { GatewayFact, Millis, NodeKey, PodFact, PodUid } from '../../rules/drain/facts.ts'
import { observable } from '../../gateway/apisix/control-api.ts'
import type { Kept, Plan } from '../../rules/plan/plan.ts'
import { type HolderKey, type World, endingNodes, nodesOf, type Match } from '../../rules/plan/holder.ts'
import { servicePortsOf } from '../../rules/plan/successors.ts'
import type { Status, Place } from './drain-status.ts'
import { isUnlisted } from '../../rules/proof/proof.ts'
import type { Sources } from './sources.ts'
import {
  elsewhere,
  hiddenPlaces,
  type Answers,
  type Behind,
  type HiddenPlace
} from '../../rules/plan/hidden.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'

const KEPT_STATE = {
  'last-node': { state: 'kept-last', why: 'no other node of this holder serves: kept until one does' },
  discovery: { state: 'foreign', why: 'APISIX finds these nodes by discovery: nothing to edit' },
  standalone: {
    state: 'foreign',
    why: 'API-driven standalone: every gateway has its own document, and none of them is written'
  },
  'dry-run': { state: 'dry-run', why: 'dry run: nothing is written' },
  'fixed-address': { state: 'listed', stays: true, why: 'left for its next pod, which has the same address' },
  owner: { state: 'listed', why: 'left to its owner; with the barrier nothing waits for that' },
  'address-unknown': { state: 'listed', why: 'its address may be another pod’s by now' }
} as const satisfies Record<Kept['why'], Pick<Evidence['holders'][number], 'state' | 'why' | 'stays'>>

/** The facts that all drains of a round share. */
export interface Gathering {
  readonly sources: Sources
  readonly world: World
  readonly drains: Drains
  readonly gateways: readonly GatewayFact[]
  /** Whether `gateways` is complete: their watch has synced, and has not been down alone for too long. */
  readonly gatewaysKnown: boolean
  /** See `BarrierKeeper.doubt`, by gateway. */
  readonly doubts: ReadonlyMap<string, string>
  /** See `DrainStore.tookOver`. */
  readonly tookOver: (host: string) => boolean
  /** The nodes that the previous round's plan kept, by holder, node and uid. */
  readonly kept: ReadonlyMap<string, Kept>
  readonly now: Millis
}

/** Collects the facts that all drains of a round share. */
export function gathering(
  sources: Sources,
  round: Pick<Gathering, 'world' | 'drains' | 'tookOver' | 'now'> & {
    readonly before: Plan
    readonly gatewaysAreOld: boolean
  }
): Gathering {
  const { cluster, barrier } = sources
  const gateways = cluster.gateways()
  const { world, drains, tookOver, before, now, gatewaysAreOld } = round
  return {
    sources,
    world,
    drains,
    tookOver,
    gateways,
    doubts: new Map(gateways.map(({ id }) => [id, barrier?.doubt(id) ?? ''])),
    gatewaysKnown: !gatewaysAreOld && cluster.parts().every(part => part.name !== 'gateways' || part.synced),
    kept: new Map(before.kept.map(kept => [placeOf(kept.holder, kept.node, kept.uid), kept])),
    now
  }
}

const placeOf = (holder: HolderKey, node: NodeKey, uid: PodUid) => `${holder} ${node} ${uid}`

/** All facts about one drain, from the caches of the parts that do I/O. Updates the drain's status. */
export function gather(drain: Drain, status: Status, round: Gathering): Evidence {
  const { sources, gateways, gatewaysKnown, doubts } = round
  const { inventory, probe, barrier } = sources
  remember(drain, status, round)

  const inventoryAt = inventory.readAt()
  status.tookOver ||= drain.pod.ips.some(round.tookOver)
  const evidence: Evidence = {
    nodes: nodesOf(drain.pod, status.ports),
    isAbsent:
      status.places.size === 0 && !status.tookOver && inventoryAt !== undefined && inventoryAt >= drain.since,
    inventoryProblem: inventory.problem(),
    holders: [...status.places.values()].map(place => report(drain, place, round)),
    gateways: gateways.map(gateway => {
      const observation = probe?.observation(drain.uid, gateway.id)
      const reading = barrier?.reading(drain.uid, gateway.id)
      const unsealed = status.unsealed.get(gateway.id) ?? ''
      const doubt = doubts.get(gateway.id) ?? ''
      // One that had a fit barrier may be back in a moment.
      const hadOne = barrier?.state(gateway.id)?.status?.fit === true
      const silent = doubt !== '' || (!hadOne && isUseless(reading))
      return { gateway, observation, barrier: reading, doubt, unsealed, silent }
    }),
    gatewaysKnown,
    sealForced: status.sealForced,
    succeeded: status.succeeded,
    tookOver: status.tookOver,
    hiddenBy: [...status.hidden.values()],
    ...(!barrier && { notLiteral: notLiteral(inventory) })
  }
  status.unlisted = isUnlisted(evidence)
  return evidence
}

/** Whether a barrier proves nothing now. One that has answered for this drain is waited for. */
const isUseless = (reading: BarrierReading | undefined): boolean =>
  reading !== undefined && !reading.binding && (reading.problem !== '' || !reading.fit)

/** Records which places list the pod, and which ports it can have. */
export function remember(
  drain: Drain,
  status: Status,
  { sources, world, drains, now }: Pick<Gathering, 'sources' | 'world' | 'drains' | 'now'>
): void {
  const ports = world.portsOf(drain.pod)
  if (ports.length > 0) status.ports = ports
  status.standing = servicePortsOf(drain.pod, sources.cluster.slices.listing(drain.pod), status.standing)
  rememberPlaces(endingNodes(world, drains, drain), status, now)
  rememberDiscovered(drain, status, sources)
  if (drain.phase === 'draining' || drain.phase === 'expired') rememberHidden(drain, status, world, sources)
}

function rememberPlaces(matches: readonly Match[], status: Status, now: Millis): void {
  const listed = new Set<string>()
  for (const { holder, node } of matches) {
    const key = `${holder.key} ${node.key}`
    listed.add(key)
    status.places.set(key, { holder, node: node.key, removedAt: undefined })
  }
  for (const [key, place] of status.places) {
    if (listed.has(key) || place.holder.discovery) continue
    place.removedAt ??= now
  }
}

/**
 * APISIX may route to the pod by discovery (`service_name` is "namespace/service:port", after an id if there are several clusters). No
 * holder lists such a pod, but the agent must not conclude that no gateway routes to it. The place is remembered, because the slices drop
 * the pod before its end.
 */
function rememberDiscovered(drain: Drain, status: Status, { cluster, inventory }: Sources): void {
  const services = cluster.slices.servicesOf(drain.pod).map(({ namespace, name }) => `${namespace}/${name}`)
  if (services.length === 0) return
  for (const holder of inventory.discovered()) {
    const [path = ''] = (holder.discovery?.service ?? '').split(':')
    if (!services.some(service => path === service || path.endsWith(`/${service}`))) continue
    status.places.set(holder.key, { holder, node: drain.pod.ips[0] ?? '', removedAt: undefined })
  }
}

function report(drain: Drain, place: Place, round: Gathering): Evidence['holders'][number] {
  const { sources, kept } = round
  const { holder, node, removedAt } = place
  const common = { key: holder.key, observable: observable(holder) }
  if (removedAt !== undefined) return { ...common, state: 'removed', why: '', removedAt }
  const listed = { ...common, removedAt: undefined }
  if (holder.discovery) return { ...listed, ...KEPT_STATE.discovery }
  const stays = kept.get(placeOf(holder.key, node, drain.uid))
  if (stays) return { ...listed, ...KEPT_STATE[stays.why] }
  const removal = sources.writer.status(holder.key, node, drain.uid)
  if (!removal || removal.state === 'removed') return { ...listed, state: 'listed', why: '' }
  return { ...listed, state: removal.state, why: removal.why }
}

/** The facts about a pod's Services, and about names that may stand for the pod. */
function behindOf(
  { cluster }: Pick<Sources, 'cluster'>,
  pod: PodFact,
  services: readonly ServiceName[],
  isListed: boolean,
  answers: Answers
): Behind {
  const known = ({ namespace, name }: ServiceName) => cluster.services.byName(namespace, name)
  // The watch of slices may be ahead of the watch of Services.
  const isCurrent = cluster.slices.servicesOf(pod).every(service => known(service) !== undefined)
  return {
    services: services.map(service => known(service) ?? service),
    elsewhere: elsewhere(pod, cluster.slices.listing(pod)),
    aliasesTo: key => cluster.services.aliasesTo(key),
    servicesKnown: isCurrent && cluster.parts().every(({ name, synced }) => name !== 'services' || synced),
    isNodePort: port => port !== undefined && cluster.services.isNodePort(port),
    isListed,
    ...answers
  }
}

/** Updates `status.hidden`: the places from which requests may reach the pod, although no list of nodes shows that. */
export function rememberHidden(drain: Drain, status: Status, world: World, sources: Sources): void {
  const { cluster, inventory } = sources
  const { pod } = drain
  const services = cluster.slices.servicesOf(pod)
  if (services.length > 0) status.services = services
  const places = [...status.places.values()]
  const unread = unreadPlace(places.length > 0 ? [] : status.services, sources)
  const found = [
    ...hiddenPlaces(
      world,
      pod,
      behindOf(sources, pod, status.services, places.length > 0, inventory.answers(pod))
    ),
    ...(unread ? [unread] : [])
  ]
  for (const [key, { isPassing }] of status.hidden) if (isPassing) status.hidden.delete(key)
  for (const place of found) status.hidden.set(`${place.holder} ${place.why}`, place)
}

/**
 * A place that stands for a missing or an empty inventory. Only the inventory shows places that lead to the pod without its address, such
 * as a ClusterIP. So nothing is proved without an inventory.
 */
function unreadPlace(
  services: readonly ServiceName[],
  { cluster, inventory, probe, barrier }: Sources
): HiddenPlace | undefined {
  const place = (why: string, change: string) =>
    ({ holder: 'inventory', isPassing: true, why, change }) as const
  if (inventory.readAt() === undefined)
    return place(
      'the holders have not been read since this agent started',
      'wait for the first listing; if it fails, the log says why (apisix.admin)'
    )
  const gateways = cluster.gateways()
  if (inventory.isEmpty() && services.length > 0) {
    const other = gateways.find(({ id }) => {
      const workers = barrier?.state(id)?.status?.workers ?? []
      const sighted = probe?.sighting(id)?.holders.size ?? 0
      return sighted > 0 || workers.some(({ revision }) => (revision ?? 0) > 0)
    })
    if (other)
      return place(
        `the Admin API lists nothing at all, and ${other.name} has a configuration`,
        'check apisix.admin: is it the etcd of these gateways?'
      )
  }
  return undefined
}

/** The first list with a node that is a name, or is discovered; `undefined`: every node is a literal address. */
export function notLiteral({
  names,
  byHost,
  discovered
}: Pick<Sources['inventory'], 'names' | 'byHost' | 'discovered'>): HiddenPlace | undefined {
  const [found] = discovered()
  const [name] = names()
  if (!found && name === undefined) return undefined
  const holder = found?.key ?? byHost(name as string)[0]?.key ?? 'a plugin'
  const why = found ? 'APISIX finds its nodes' : `${name} is a name`
  return { holder, why: `${why}, so reads prove nothing`, change: LOAD_IT }
}
