import type { BarrierKeeper, DesiredEntry } from '../confirm/barrier.ts'
import { appliedRevision } from '../confirm/gateway-state.ts'
import { type Needed, sealable, sealableAtOnce } from '../confirm/seal.ts'
import type { Drain, Drains } from '../drain/drain.ts'
import { isUp } from '../drain/eligible.ts'
import type { Millis, NodeKey } from '../drain/facts.ts'
import type { Resource } from '../plan/holder.ts'
import { nodesOf } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import { caughtUp } from './caught-up.ts'
import type { Looks, Memory } from './memory.ts'
import { replacements, type ReplacementSince } from './replacement.ts'
import type { Sources } from './sources.ts'

/** How long before the deadline an entry is sealed whatever is known: from then on an honest 503 beats a dead pod. */
export const SEAL_BEFORE_MS = 250
/** How long a gateway whose workers do not tell their revision must have managed without the node, in ms. */
export const QUIET_MS = 1000

/** A worker that has applied anything at all. */
const NOTHING_NEEDED: Needed = new Map([['upstreams', 0]])

export interface EntryContext {
  readonly sources: Sources
  readonly barrier: BarrierKeeper
  readonly world: World
  readonly replacementSince: ReplacementSince
  /** See `caughtUp`. */
  readonly areCaughtUp: () => boolean
  readonly now: Millis
}

/** What all entries of one round have in common. */
export function entryContext(
  sources: Sources,
  barrier: BarrierKeeper,
  world: World,
  drains: Drains,
  now: Millis
): EntryContext {
  const replacementSince = replacements(sources, world, drains)
  return { sources, barrier, world, replacementSince, areCaughtUp: caughtUp(sources, barrier), now }
}

/** What the deny-list of every gateway should hold for a drain now; `undefined` where it should hold nothing. */
export function desiredEntry(drain: Drain, memory: Memory, context: EntryContext): DesiredEntry | undefined {
  if (drain.phase === 'undone') return undefined
  const nodes = barrierNodes(drain, memory, context.world)
  if (nodes.length === 0) return undefined
  const waiting = drain.phase === 'draining'
  if (!memory.sealed) {
    const isLate = context.now >= drain.deadline - SEAL_BEFORE_MS
    memory.sealed = !waiting || maySeal(drain, memory, context, false)
    memory.sealForced = !memory.sealed && isLate && maySeal(drain, memory, context, true)
    memory.sealed ||= memory.sealForced
  }
  return { uid: drain.uid, nodes, state: memory.sealed ? 'sealed' : 'draining', watch: waiting }
}

/** When to look again although nothing happens; `undefined` where only an event can change anything. */
export function sealLookAt(drain: Drain, memory: Memory, now: Millis): Millis | undefined {
  if (drain.phase !== 'draining' || memory.sealed) return undefined
  const listedAt = memory.listedAt ?? -Infinity
  const quiet = [...memory.looks.values()].map(look => Math.max(look.quietSince, listedAt) + QUIET_MS)
  return Math.min(...[...quiet, drain.deadline - SEAL_BEFORE_MS].filter(at => at > now))
}

/**
 * `isLate`: the deadline is near, so what a gateway still needs does not count any more.
 *
 * All gateways or none: a gateway that still needs the pod keeps it alive for that gateway's users. One whose barrier cannot
 * be used is not waited for: it could not be sealed, and weaker evidence has to do there. But it may be back in a moment, and
 * what it is told then is a seal: so not where it would lose the last node, and for a while not where that is not known.
 */
function maySeal(
  drain: Drain,
  memory: Memory,
  { sources, barrier, replacementSince, areCaughtUp, now }: EntryContext,
  isLate: boolean
): boolean {
  const lastEndpoint =
    drain.phase === 'draining' && drain.verdict.kind === 'waiting' && drain.verdict.lastEndpoint
  const needed = neededRevisions(drain, memory, { sources, replacementSince, areCaughtUp })
  const deadline = isLate ? drain.deadline : Infinity
  // A pod that is newer than the last listing is in no place that is known, and may be the only node of one: a quiet second before
  // that is known says nothing.
  const isListed = memory.places.size > 0 || (sources.inventory.readAt() ?? -Infinity) >= drain.since
  if (isListed) memory.listedAt ??= now
  const quietSince = (look: Looks) => Math.max(look.quietSince, memory.listedAt ?? Infinity)
  return sources.cluster.gateways().every(({ id }) => {
    const look = memory.looks.get(id)
    const state = barrier.state(id)
    if (!look?.current) return sealableAtOnce(state, needed)
    if (look.current.problem !== '' || !look.current.fit)
      return isLate || (!lastEndpoint && (needed !== undefined || now >= quietSince(look) + QUIET_MS))
    // By an agent before this one, or by another replica: there is nothing left to spare here.
    if (look.current.entry === 'sealed') return true
    return sealable(look, { deadline }, lastEndpoint, now, {
      sealBeforeMs: SEAL_BEFORE_MS,
      waitForInflight: false,
      needed,
      applied: kind => state && appliedRevision(state, kind),
      quietSince: quietSince(look),
      quietMs: QUIET_MS
    }).seal
  })
}

/**
 * The revisions from which on a worker knows, for every holder that lists (or listed) the pod, a node that is not ending.
 * `undefined` where the inventory cannot tell. A pod that no holder lists needs no other node: revision 0. But only a
 * listing that began after the drain shows that none does: an older one is from before the pod was added. And its owner may
 * have replaced it just before that listing: a worker that is behind may know no node but this one.
 */
function neededRevisions(
  drain: Drain,
  memory: Memory,
  {
    sources: { inventory, mode },
    replacementSince,
    areCaughtUp
  }: Pick<EntryContext, 'sources' | 'replacementSince' | 'areCaughtUp'>
): Needed | undefined {
  if (memory.places.size === 0)
    return (inventory.readAt() ?? -Infinity) >= drain.since && areCaughtUp() ? NOTHING_NEEDED : undefined
  // Documents have no revision in common with what the workers tell.
  if (mode.current().mode === 'standalone') return undefined
  const needed = new Map<Resource, number>()
  for (const { holder } of memory.places.values()) {
    const since = replacementSince(holder.key)
    if (since === undefined) return undefined
    needed.set(holder.resource, Math.max(needed.get(holder.resource) ?? 0, since))
  }
  return inventory.readAt() === undefined ? undefined : needed
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
