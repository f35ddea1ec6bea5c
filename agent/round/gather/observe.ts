import type { InheritedStop } from '../../gateway/barrier/desired-entry.ts'
import { isUnlisted, prove } from '../../rules/proof/proof.ts'
import { unprovable, type Evidence, type ProofSettings } from '../../rules/proof/verdict.ts'
import { proveByReads } from '../../rules/proof/observed.ts'
import type { Drain, Drains, Seen, Stop, Verdict } from '../../rules/drain/drain.ts'
import { backAgain, isOver } from '../../rules/drain/eligible.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Plan } from '../../rules/plan/plan.ts'
import type { World } from '../../rules/plan/holder.ts'
import { areLive } from '../../kubernetes/reflect/watch-status.ts'
import { gather, gathering, remember, type Gathering } from './gather.ts'
import type { HeldHook, Hooks } from '../hold/hooks.ts'
import type { Statuses, Status } from './drain-status.ts'
import type { Sources } from './sources.ts'

/** One round's facts about one pod: the input of `step`, and the evidence behind its verdict. */
export interface Look {
  readonly seen: Seen
  /** Absent once the drain is proven. */
  readonly evidence: Evidence | undefined
}

interface RoundInput {
  readonly sources: Sources
  readonly world: World
  readonly drains: Drains
  readonly statuses: Statuses
  readonly tookOver: (host: string) => boolean
  readonly hooks: Hooks
  /** The previous round's plan. The nodes that it kept, with the reasons, are part of the evidence. */
  readonly before: Plan
  readonly proof: ProofSettings
  readonly now: Millis
  /** The time of the previous round. Pods whose objects have gone since then are handled once more. */
  readonly since: Millis
  /** See `Gathering.gatewaysKnown`. */
  readonly gatewaysAreOld: boolean
}

/** The watches that show the ends of pods. */
const WITNESSES = ['pods', 'endpointslices'] as const

/** All present facts about each pod that ends, may end, or has a held hook. */
export function observe(round: RoundInput): Map<PodUid, Look> {
  const { cluster } = round.sources
  const held = Map.groupBy(round.hooks.held(), ({ hook }) => hook.uid)
  const running = inheritedStops(round.sources, round.now).filter(({ isOver }) => !isOver)
  const inherited = new Map(running.map(({ uid, stops }) => [uid, stops]))
  const uids = new Set<PodUid>([
    ...round.drains.keys(),
    ...held.keys(),
    ...inherited.keys(),
    ...cluster.pods.ending().map(pod => pod.uid),
    ...cluster.pods.goneSince(round.since).map(({ fact }) => fact.uid)
  ])
  const shared = gathering(round.sources, round)
  const current = areLive(cluster.parts(), WITNESSES)
  const looks = new Map<PodUid, Look>()
  for (const uid of uids) {
    const look = observeOne(uid, held.get(uid) ?? [], inherited.get(uid) ?? [], round, shared, current)
    if (look) looks.set(uid, look)
  }
  return looks
}

/**
 * The restarts that all gateways tell, so that an agent keeps and lifts a seal whose hook another agent got. Whoever can put such a text
 * there could deny the pod as well. The addresses must be the pod's own. Empty while the agent is blind.
 */
export function inheritedStops(
  { barrier, cluster }: Pick<Sources, 'barrier' | 'cluster'>,
  now: Millis
): readonly (InheritedStop & { readonly isOver: boolean })[] {
  if (!areLive(cluster.parts(), ['pods', 'endpointslices'])) return []
  return (barrier?.stops() ?? []).flatMap(one => {
    const pod = cluster.pods.get(one.uid)
    if (!pod || pod.hostNetwork || !one.ips.every(ip => pod.ips.includes(ip))) return []
    return [{ ...one, isOver: one.stops.every(stop => backAgain(stop, pod, now, true) !== undefined) }]
  })
}

function observeOne(
  uid: PodUid,
  held: readonly HeldHook[],
  inherited: readonly Stop[],
  round: RoundInput,
  shared: Gathering,
  current: boolean
): Look | undefined {
  const { cluster, inventory } = round.sources
  const drain = round.drains.get(uid)
  const tombstone = cluster.pods.gone(uid)
  const pod = cluster.pods.get(uid) ?? held[0]?.pod ?? tombstone?.fact ?? drain?.pod
  if (!pod) return undefined

  const isHeld = held.length > 0
  const hookAt = isHeld ? Math.min(...held.map(({ hook }) => hook.receivedAt)) : undefined
  // Finished Jobs stay for days and are part of every round, so they get no status.
  const status = drain || isHeld ? round.statuses.of(uid) : undefined
  if (status) status.hookAt ??= hookAt
  if (status) status.sleepMs = Math.max(status.sleepMs, ...held.map(({ hook }) => hook.sleepMs ?? 0))
  if (status) status.heardAt ??= cluster.pods.deletionHeardAt(uid)

  // A proven drain stays proven. So no evidence is gathered: the guard needs only the places that list the pod.
  const isProven = drain?.phase === 'proven'
  if (isProven && status) remember(drain, status, shared)
  const evidence = drain && status && !isProven ? gather(drain, status, shared) : undefined
  // The inventory must be newer than the end of a pod that was listed. Otherwise the owner may have put the node back unseen, and no drain
  // would be left to remove the node.
  const wasListed = status !== undefined && status.places.size > 0
  const endedAt = wasListed ? (tombstone?.at ?? drain?.since) : (drain?.since ?? tombstone?.at)
  const isJob = isOver(pod) && !wasListed
  if (isJob && status && evidence) status.unlisted = isUnlisted({ ...evidence, isAbsent: true })
  const seen: Seen = {
    pod,
    gone: cluster.pods.get(uid) === undefined && tombstone !== undefined,
    current,
    hookAt,
    calls: round.proof.by === 'barrier' ? [...held.flatMap(({ stop }) => stop ?? []), ...inherited] : [],
    routed: round.world.portsOf(pod),
    listed:
      isListed(pod, drain, status, round.world) ||
      (isOld(inventory.readAt(), endedAt, isJob) ? undefined : false),
    verdict: evidence && drain && verdict(evidence, drain, round)
  }
  return { seen, evidence }
}

function verdict(
  evidence: Evidence,
  drain: Drain,
  { now, proof }: Pick<RoundInput, 'now' | 'proof'>
): Verdict {
  if (proof.by === 'barrier') return prove(evidence, drain, now, proof)
  if (proof.by === 'observed') return proveByReads(evidence, drain, now, proof)
  return unprovable(evidence, drain, now, proof.by)
}

/**
 * Whether the inventory is too old to show that no holder lists the pod. Its owner may have added the pod after the inventory was read, and
 * a gone pod is checked only once. Pods of finished Jobs are excepted, because each would cost a listing.
 */
const isOld = (readAt: Millis | undefined, endedAt: Millis | undefined, isJob: boolean): boolean =>
  readAt === undefined || (endedAt !== undefined && readAt < endedAt && !isJob)

function isListed(pod: PodFact, drain: Drain | undefined, status: Status | undefined, world: World): boolean {
  if (drain && status) return [...status.places.values()].some(place => place.removedAt === undefined)
  const mine = (ip: string) => world.ownersOf(ip).every(owner => owner.uid === pod.uid)
  return pod.ips.some(ip => mine(ip) && world.holdersOf(ip).length > 0)
}
