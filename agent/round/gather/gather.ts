import { type BarrierReading, type Evidence, type Word, LOAD_IT } from '../../rules/proof/verdict.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../../rules/drain/facts.ts'
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
  unaskable,
  waysTo,
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

export type Gathering = ReturnType<typeof gathering>

/** Collects the facts that all drains of a round share. `tookOver`: see `DrainStore`; `before`: the plan of the last round. */
export function gathering(
  sources: Sources,
  round: {
    readonly world: World
    readonly drains: Drains
    readonly tookOver: (host: string) => boolean
    readonly before: Plan
    readonly gatewaysAreOld: boolean
    readonly now: Millis
  }
) {
  const { cluster, barrier } = sources
  const gateways = cluster.gateways()
  const { world, drains, tookOver, before, now, gatewaysAreOld } = round
  return {
    sources,
    world,
    drains,
    tookOver,
    gateways,
    /** See `BarrierKeeper.doubt`, by gateway. */
    doubts: new Map(gateways.map(({ id }) => [id, barrier?.doubt(id) ?? ''])),
    /** Whether the list is complete: their watch has synced, and has not been down alone for too long. */
    gatewaysKnown: !gatewaysAreOld && cluster.parts().every(part => part.name !== 'gateways' || part.synced),
    /** The nodes that the last plan kept. */
    kept: new Map(before.kept.map(kept => [placeOf(kept.holder, kept.node, kept.uid), kept])),
    now
  }
}

const placeOf = (holder: HolderKey, node: NodeKey, uid: PodUid) => `${holder} ${node} ${uid}`

/** All facts about one drain, from the caches of the parts that do I/O. Updates the drain's status. */
export function gather(drain: Drain, status: Status, round: Gathering): Evidence {
  const { sources, gateways, gatewaysKnown, doubts } = round
  const { inventory, probe, barrier, mode } = sources
  remember(drain, status, round)

  const inventoryAt = inventory.readAt()
  status.tookOver ||= drain.pod.ips.some(round.tookOver)
  const words = gateways.flatMap(({ id }) => barrier?.reading(drain.uid, id)?.word ?? [])
  const evidence: Evidence = {
    nodes: nodesOf(drain.pod, status.ports),
    isAbsent:
      status.places.size === 0 &&
      !status.tookOver &&
      (mode.current().mode === 'none'
        ? words.length === gateways.length && words.every(isNowhere)
        : inventoryAt !== undefined && inventoryAt >= drain.since),
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
    succeeded: [...new Set(words.flatMap(({ succeeded }) => succeeded))].sort(),
    tookOver: status.tookOver,
    hiddenBy: hiddenBy(words, status, sources),
    ...(!barrier && { notLiteral: notLiteral(inventory) })
  }
  status.unlisted = isUnlisted(evidence)
  return evidence
}

/** No worker would choose the pod. Without lists, only workers know that. */
const isNowhere = ({ complete, places, hidden }: Word): boolean => complete && places + hidden === 0

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
  if (drain.phase === 'draining' || drain.phase === 'expired') rememberWays(drain, status, world, sources)
}

function rememberPlaces(matches: readonly Match[], status: Status, now: Millis): void {
  const listed = new Map<string, Place>()
  for (const { holder, node } of matches)
    listed.set(`${holder.key} ${node.key}`, { holder, node: node.key, removedAt: undefined })
  for (const [key, place] of status.places) if (!listed.has(key)) place.removedAt ??= now
  for (const [key, place] of listed) status.places.set(key, place)
}

function report(drain: Drain, place: Place, round: Gathering): Evidence['holders'][number] {
  const { sources, kept } = round
  const { holder, node, removedAt } = place
  const common = { key: holder.key, observable: observable(holder) }
  if (removedAt !== undefined) return { ...common, state: 'removed', why: '', removedAt }
  const listed = { ...common, removedAt: undefined }
  const stays = kept.get(placeOf(holder.key, node, drain.uid))
  if (stays) return { ...listed, ...KEPT_STATE[stays.why] }
  const removal = sources.writer.status(holder.key, node, drain.uid)
  if (!removal || removal.state === 'removed') return { ...listed, state: 'listed', why: '' }
  return { ...listed, state: removal.state, why: removal.why }
}

/** The facts about a pod's Services, and about names that may stand for the pod. */
function behindOf({ cluster }: Pick<Sources, 'cluster'>, pod: PodFact, status: Status): Behind {
  const known = ({ namespace, name }: ServiceName) => cluster.services.byName(namespace, name)
  // The watch of slices may be ahead of the watch of Services.
  const isCurrent = cluster.slices.servicesOf(pod).every(service => known(service) !== undefined)
  return {
    services: status.services.map(service => known(service) ?? service),
    elsewhere: elsewhere(pod, cluster.slices.listing(pod)),
    aliasesTo: key => cluster.services.aliasesTo(key),
    servicesKnown: isCurrent && cluster.parts().every(({ name, synced }) => name !== 'services' || synced),
    isNodePort: port => port !== undefined && cluster.services.isNodePort(port)
  }
}

/** Updates the ways by which requests may reach the pod, although no list of nodes shows that. */
function rememberWays({ pod }: Drain, status: Status, world: World, sources: Sources): void {
  const services = sources.cluster.slices.servicesOf(pod)
  if (services.length > 0) status.services = services
  const behind = behindOf(sources, pod, status)
  status.ways = new Map([...status.ways, ...waysTo(world, pod, behind)])
  status.unaskable = unaskable(pod, status.ports, status.ways, behind)
}

/** The ways that APISIX has: by the words of all workers, without the plugin by the lists of the Admin API. */
function hiddenBy(
  words: readonly Word[],
  { ways, unaskable, places }: Status,
  { inventory, barrier }: Sources
) {
  const isListed = places.size > 0 || words.some(word => word.places > 0)
  const answers = barrier ? words.flatMap(({ found }) => found) : [...ways.keys()].flatMap(inventory.answers)
  const more = Math.max(0, ...words.map(word => word.more))
  const found = hiddenPlaces(ways, answers, more)
  const known = new Map(found.map(place => [`${place.holder} ${place.why}`, place]))
  return [...unaskable.filter(({ isPassing }) => !isPassing || !isListed), ...known.values()]
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
