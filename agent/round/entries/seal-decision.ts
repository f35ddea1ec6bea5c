import type { BarrierKeeper } from '../../gateway/barrier/gateways.ts'
import { type DesiredDrain, stopText } from '../../gateway/barrier/desired-entry.ts'
import { HOLD_ALL, judge, type Judged, type LetGo } from '../../rules/proof/proof.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import { isOver, mayStay } from '../../rules/drain/eligible.ts'
import { decidedAt } from '../../rules/drain/step.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../../rules/drain/facts.ts'
import { addressOf } from '../../gateway/apisix/holders.ts'
import { LAST_ENDPOINT_MS } from '../../rules/plan/successors.ts'
import {
  type World,
  isOfOtherNamespace,
  type Holder,
  deniedNodes,
  leftOnHost,
  objectOf,
  nodesOf,
  serves
} from '../../rules/plan/holder.ts'
import type { Status } from '../gather/drain-status.ts'
import type { Sources } from '../gather/sources.ts'
import type { Succession } from './succession.ts'

/**
 * How long before the deadline an entry is sealed without the workers' words, in ms. From then on, a 503 is better than a request to a dead
 * pod.
 */
export const SEAL_BEFORE_MS = 250

/**
 * How long names without an answer delay the seal of a pod to which one of them may lead, in ms. A worker that has not resolved a name yet
 * may know no other node of its place.
 */
const NAME_MS = 1000

export interface EntryRound {
  readonly cluster: Pick<Sources['cluster'], 'gateways'>
  readonly barrier: Pick<BarrierKeeper, 'reading'>
  readonly world: World
  readonly drains: Drains
  readonly succession: Pick<Succession, 'of' | 'takenFor' | 'holdOf'>
  readonly now: Millis
  /** The pods whose hooks are held. */
  readonly held: ReadonlySet<PodUid>
  /** How long other namespaces, and owners that are late, may delay a pod's seal, in ms. Absent: no limit. */
  readonly foreignHoldMs?: number | undefined
}

type EntryContext = ReturnType<typeof entryContext>

/** The facts that all entries of one round share. */
export function entryContext(round: EntryRound) {
  const { world, drains, succession, foreignHoldMs } = round
  // Cached: if hundreds of pods of one Service end at once, their words name the same other nodes.
  const known = new Map<string, boolean>()
  const mayServe = (node: NodeKey): boolean => {
    const found =
      known.get(node) ?? serves(world, drains, { ...addressOf(node), key: node, weight: 1, raw: node })
    known.set(node, found)
    return found
  }
  const successors = ({ pod }: Drain, status: Status) => ({
    successors: succession.of(pod, status, drains),
    isTaken: succession.takenFor(pod)
  })
  // Another pod has at least the hook's own sleep to come: so long the pod would have served without the agent too.
  const lastHold = ({ pod }: Drain, status: Status): Millis => {
    const ms = succession.holdOf(pod, status, foreignHoldMs ?? Infinity)
    return ms > 0 ? Math.max(ms, status.sleepMs) : 0
  }
  return { ...round, serves: mayServe, successors, lastHold }
}

/** The entry that every gateway's deny-list should hold for a drain now; `undefined` for none. */
export function desiredEntry(drain: Drain, status: Status, context: EntryContext): DesiredDrain | undefined {
  const nodes = drain.phase === 'undone' ? [] : barrierNodes(drain, status, context.world)
  // The next drain of the pod needs words of its own, and so does one that denies more than before.
  if (nodes.length === 0 || nodes.length > status.denied) status.sealing = status.sealForced = false
  status.denied = nodes.length
  if (nodes.length === 0) return undefined
  // Tells a restart from an end, and from another restart of the same pod.
  const latestAt = Math.max(...drain.stops.map(({ at }) => at))
  const stop = mayStay(drain) ? { text: stopText(drain.stops), at: latestAt } : undefined
  // Gateways look for the pod's own address by themselves.
  const { hostNetwork, ips } = drain.pod
  const ways = [...status.ways.keys()].filter(way => hostNetwork || !ips.includes(way))
  const entry = { uid: drain.uid, nodes, stop, ways, ...context.successors(drain, status) }
  // A grace that leaves no time to hold the hook, or less than its own sleep: the pod serves on, as without the agent.
  const forcedAt = drain.deadline - SEAL_BEFORE_MS
  const isShort = forcedAt <= (status.hookAt ?? drain.since) + status.sleepMs
  // No answer forces a seal: until the deadline the pod serves where it is needed, whatever its hook was answered.
  const isOpen =
    drain.phase === 'draining' || (drain.phase === 'expired' && (isShort || context.now < forcedAt))
  // A hook that is held after the proof waits for a gateway that has restarted or joined. So the entry is still watched.
  if (!isOpen)
    return { ...entry, state: 'sealed', watch: drain.phase === 'proven' && context.held.has(drain.uid) }
  const isLate = context.now >= foreignUntil(drain, context.foreignHoldMs)
  const { agreed, isSealed, isLast } = agreement(drain, status, context, isLate)
  const isVain = isLast && context.now >= drain.since + context.lastHold(drain, status)
  if ((status.sealForced || isVain || context.now >= forcedAt) && !isShort) {
    status.sealForced ||= !isSealed
    return { ...entry, state: 'sealed', watch: true }
  }
  status.sealing ||= isSealed || agreed.size > 0
  return {
    ...entry,
    state: status.sealing ? 'sealed' : 'draining',
    watch: true,
    ...(status.sealing && { agreed })
  }
}

/** Until when holders of other namespaces may delay the pod's seal. */
const foreignUntil = ({ since }: Drain, foreignHoldMs = Infinity): Millis => since + foreignHoldMs

/** When the entry must be checked again without an event; `undefined` if only an event can change it. */
export function sealLookAt(drain: Drain, now: Millis, foreignHoldMs?: number): Millis | undefined {
  if (drain.phase !== 'draining' && drain.phase !== 'expired') return undefined
  const last = drain.deadline - SEAL_BEFORE_MS
  const holds = [NAME_MS, LAST_ENDPOINT_MS].map(ms => drain.since + ms)
  const times = [...holds, foreignUntil(drain, foreignHoldMs), last].filter(at => at > now && at <= last)
  return times.sort((a, b) => a - b)[0]
}

/**
 * The gateways that may seal, each by the words of its own workers: one without another choice needs the pod for its users, the others do
 * not. A gateway whose barrier cannot be used does not count: it could not be sealed.
 */
function agreement(
  { uid, pod, since }: Drain,
  status: Status,
  { cluster, barrier, serves, now }: EntryContext,
  isLate: boolean
): {
  /** By gateway: the tags of the words that allow the seal. */
  readonly agreed: ReadonlyMap<string, readonly string[]>
  /** Every gateway that can be asked is sealed. */
  readonly isSealed: boolean
  /** The only reason against the seal is that the pod is the last endpoint of a place. */
  readonly isLast: boolean
} {
  const agreed = new Map<string, readonly string[]>()
  status.unsealed.clear()
  const letGo = isLate ? letGoOf(pod, status.places.values(), now) : HOLD_ALL
  let isSealed = true
  let isLast = true
  for (const { id } of cluster.gateways()) {
    const reading = barrier.reading(uid, id)
    if (reading?.entry === 'sealed') continue
    // The drain does not wait for a gateway whose barrier cannot be used. A gateway that was sealed before has passed the check above.
    if (reading && (reading.problem !== '' || !reading.fit)) continue
    isSealed = false
    const judged: Judged = reading?.word
      ? now < since + NAME_MS && reading.word.hidden > 0 && reading.word.found.length > 0
        ? { why: 'a name that may lead to the pod has no answer yet' }
        : judge(reading.word, serves, letGo)
      : { why: 'its workers have not been asked yet' }
    if ('why' in judged) {
      status.unsealed.set(id, judged.why)
      isLast &&= judged.isLast === true
      continue
    }
    agreed.set(id, judged.tags)
  }
  return { agreed, isSealed, isLast: isLast && status.unsealed.size > 0 }
}

/**
 * The nodes of a drain's entry. An address that a later pod has now is left out at once. Pods that share their host's address
 * are distinguished by port. Two of them may have the same port while both serve (TCP and UDP, SO_REUSEPORT), so no port is left out during
 * the drain.
 */
function barrierNodes(drain: Drain, status: Status, world: World): readonly NodeKey[] {
  if (drain.pod.hostNetwork) {
    if (drain.phase === 'draining') return nodesOf(drain.pod, status.ports)
    return leftOnHost(world, drain.pod, nodesOf(drain.pod, status.ports))
  }
  const hasEnded = drain.pod.deletionAt === undefined && (drain.phase === 'gone' || isOver(drain.pod))
  // A pod can stay Terminating when its address is another pod's, which may end too.
  const isOthers = (owner: PodFact) =>
    owner.uid !== drain.uid &&
    !owner.hostNetwork &&
    !isOver(owner) &&
    (owner.deletionAt === undefined ||
      hasEnded ||
      (decidedAt(owner) ?? 0) > (decidedAt(drain.pod) ?? Infinity))
  const ips = drain.pod.ips.filter(ip => !world.ownersOf(ip).some(isOthers))
  return deniedNodes(drain, { ...drain.pod, ips }, status.ports)
}

/** A holder that lists a pod, or has listed it since its drain began. */
export interface ListedIn {
  readonly holder: Holder
  /** When the pod left the holder; `undefined`: the holder lists the pod now. */
  readonly removedAt: Millis | undefined
}

/** The most places without another choice that words name (docs/barrier-api.md). */
const MOST_NAMED = 16
/** How long after a removal the agent assumes that every worker has applied the removal, in ms. Workers take milliseconds. */
const APPLIED_MS = 1000

/**
 * The places that no longer delay a pod's seal, once the time for holders of other namespaces is over (docs/decisions/0057). Such a place
 * must be known to be of another namespace. Words name at most 16 places without another choice, and 16 lists of other choices. If there
 * may be more places, the pod's own holders must have dropped the pod before, because an unnamed place could be theirs.
 */
export function letGoOf(pod: Pick<PodFact, 'namespace'>, listedIn: Iterable<ListedIn>, now: Millis): LetGo {
  const all = [...listedIn]
  const foreign = all.filter(({ holder }) => isOfOtherNamespace(pod, holder))
  if (foreign.length === 0) return HOLD_ALL
  const own = all.filter(({ holder }) => !isOfOtherNamespace(pod, holder))
  const objects = new Set(foreign.map(({ holder }) => objectOf(holder.key)))
  const isClear = own.every(({ removedAt }) => removedAt !== undefined && removedAt + APPLIED_MS <= now)
  const has = ({ holder }: ListedIn, node: NodeKey) => holder.nodes.some(({ key }) => key === node)
  return {
    place: (name, named) => objects.has(objectOf(name)) && (named < MOST_NAMED || isClear),
    others: nodes =>
      foreign.some(one => nodes.every(node => has(one, node))) &&
      !own.some(one => nodes.some(node => has(one, node))),
    cut: isClear
  }
}
