import type { BarrierKeeper, DesiredDrain } from '../barrier/barrier.ts'
import { judge } from '../barrier/seal.ts'
import type { Drain, Drains } from '../drain/drain.ts'
import { isUp } from '../drain/eligible.ts'
import type { Millis, NodeKey } from '../drain/facts.ts'
import { addressOf } from '../apisix/nodes.ts'
import { nodesOf, serves } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Memory } from '../proof/memory.ts'
import type { Sources } from '../proof/sources.ts'

/** How long before the deadline an entry is sealed without a word: from then on an honest 503 beats a dead pod. */
export const SEAL_BEFORE_MS = 250

interface EntryContext {
  readonly cluster: Pick<Sources['cluster'], 'gateways'>
  readonly barrier: Pick<BarrierKeeper, 'reading'>
  readonly world: World
  /** Whether the node, `address:port`, may serve as far as Kubernetes tells. */
  readonly serves: (node: string) => boolean
  readonly now: Millis
}

/** The facts that all entries of one round share. */
export function entryContext(
  { cluster }: Pick<Sources, 'cluster'>,
  barrier: Pick<BarrierKeeper, 'reading'>,
  world: World,
  drains: Drains,
  now: Millis
): EntryContext {
  // Cached: when hundreds of pods of one Service end at once, their words name the same other nodes.
  const known = new Map<string, boolean>()
  const mayServe = (node: string): boolean => {
    const found =
      known.get(node) ?? serves(world, drains, { ...addressOf(node), key: node, weight: 1, raw: node })
    known.set(node, found)
    return found
  }
  return { cluster, barrier, world, serves: mayServe, now }
}

/** The entry that every gateway's deny-list should hold for a drain now; `undefined` for none. */
export function desiredEntry(drain: Drain, memory: Memory, context: EntryContext): DesiredDrain | undefined {
  if (drain.phase === 'undone') return undefined
  const nodes = barrierNodes(drain, memory, context.world)
  if (nodes.length === 0) return undefined
  const entry = { uid: drain.uid, nodes }
  if (drain.phase !== 'draining') return { ...entry, state: 'sealed', watch: false }
  const { agreed, isUnanimous, isSealed } = agreement(drain, memory, context)
  if (context.now >= drain.deadline - SEAL_BEFORE_MS) {
    memory.sealForced ||= !isSealed
    return { ...entry, state: 'sealed', watch: true }
  }
  memory.sealing ||= isUnanimous && (isSealed || agreed.size > 0)
  return {
    ...entry,
    state: memory.sealing ? 'sealed' : 'draining',
    watch: true,
    ...(memory.sealing && { agreed })
  }
}

/** When the entry must be checked again without an event; `undefined` if only an event can change it. */
export function sealLookAt(drain: Drain, now: Millis): Millis | undefined {
  const at = drain.deadline - SEAL_BEFORE_MS
  return drain.phase === 'draining' && at > now ? at : undefined
}

/**
 * Which gateways may seal, by the words of their workers. All gateways or none: a gateway that still needs the pod keeps it in service
 * for that gateway's users. A gateway whose barrier cannot be used does not count: it could not be sealed, and needs weaker evidence.
 */
function agreement(
  { uid }: Drain,
  memory: Memory,
  { cluster, barrier, serves }: EntryContext
): {
  /** By gateway: the tags of the words that allow the seal. */
  readonly agreed: ReadonlyMap<string, readonly string[]>
  /** No gateway speaks against it. */
  readonly isUnanimous: boolean
  /** Every gateway that can be asked is sealed. */
  readonly isSealed: boolean
} {
  const agreed = new Map<string, readonly string[]>()
  memory.unsealed.clear()
  let isSealed = true
  for (const { id } of cluster.gateways()) {
    const reading = barrier.reading(uid, id)
    if (reading?.entry === 'sealed') continue
    // A gateway whose barrier cannot be used is not waited for. If it was sealed before that, the line above counts it.
    if (reading && (reading.problem !== '' || !reading.fit)) continue
    isSealed = false
    const judged = reading?.word
      ? judge(reading.word, serves)
      : { why: 'its workers have not been asked yet' }
    if ('tags' in judged) agreed.set(id, judged.tags)
    else memory.unsealed.set(id, judged.why)
  }
  return { agreed, isUnanimous: memory.unsealed.size === 0, isSealed }
}

/**
 * The addresses of a drain that are still its own: an address that belongs to a living pod of another uid by now is
 * lifted at once. Pods that share their host's address are told apart by port, and the port of one that is up there once
 * this one is drained is no longer this one's: with `hostNetwork` the successor often comes where the pod was.
 */
function barrierNodes(drain: Drain, memory: Memory, world: World): readonly NodeKey[] {
  const others = (ip: string) =>
    world.ownersOf(ip).filter(owner => owner.uid !== drain.uid && owner.deletionAt === undefined)
  if (drain.pod.hostNetwork) {
    // Two may have a port in common while both serve (TCP and UDP, SO_REUSEPORT).
    if (drain.phase === 'draining') return nodesOf(drain.pod, memory.ports)
    const successors = drain.pod.ips.flatMap(others).filter(owner => owner.hostNetwork && isUp(owner))
    const taken = new Set(successors.flatMap(pod => nodesOf(pod, world.portsOf(pod.uid))))
    return nodesOf(drain.pod, memory.ports).filter(node => !taken.has(node))
  }
  const ips = drain.pod.ips.filter(ip => others(ip).every(owner => owner.hostNetwork))
  return nodesOf({ ...drain.pod, ips }, memory.ports)
}
