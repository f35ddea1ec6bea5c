import { deadlineOf } from './budget.ts'
import type { Drain, Verdict, Waiting, Witness } from './drain.ts'
import { eligible, isOver, witnessesOf } from './eligible.ts'
import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'
import { earliest } from './times.ts'

/**
 * The phases of a drain. No phase leads back to an earlier one. A proven drain stays proven, even if a writer puts the node back, because
 * the plan repairs that. A deletion is never undone, whatever an older copy of the pod shows.
 *
 *     begin ─► draining ─► proven ──┐
 *                 │ └────► expired ─┤ (proven after all, if evidence comes late)
 *                 │                 ├─► gone ─► forgotten when no holder lists the pod
 *                 └─────────────────┴─► undone ─► forgotten one round later
 */
type Base = Pick<Drain, 'uid' | 'pod' | 'decidedAt' | 'witnesses' | 'since' | 'deadline' | 'restartsAtStart'>

type Course =
  | { readonly phase: 'draining'; readonly verdict: Verdict }
  | { readonly phase: 'proven' | 'expired' | 'gone'; readonly verdict: Verdict; readonly at: Millis }

/** The verdict on a drain that has just begun. */
export const NOTHING_YET: Waiting = {
  kind: 'waiting',
  lastEndpoint: false,
  barred: false,
  vain: false,
  until: undefined,
  why: 'nothing has been observed yet',
  gateways: [],
  holders: []
}

/** The drain of a pod that ends; `undefined` if there is no sign of its end, or if the pod opted out. */
export function begin(seen: Seen, now: Millis, settings: DrainSettings): Drain | undefined {
  const eligibility = eligible(seen, settings)
  if (!eligibility.ends) return undefined
  const witnesses = record({}, eligibility.witnesses, seen, now)
  const since = Math.min(...Object.values(witnesses))
  const base: Base = {
    uid: seen.pod.uid,
    pod: seen.pod,
    decidedAt: decidedAt(seen.pod),
    witnesses,
    since,
    deadline: deadlineOf(seen.pod, witnesses.deletion ?? runsSince(since, seen), settings),
    restartsAtStart: seen.pod.restarts
  }
  return nextPhase(base, { phase: 'draining', verdict: NOTHING_YET }, seen, now)
}

/** The drain one round later; `undefined` = forget it. */
export function step(drain: Drain, seen: Seen, now: Millis, settings: DrainSettings): Drain | undefined {
  if (drain.phase === 'undone') return undefined
  const pod = merge(drain.pod, seen.pod)
  const witnesses = record(drain.witnesses, witnessesOf({ ...seen, pod }), seen, now)
  const since = Math.min(drain.since, ...Object.values(witnesses))
  const due = deadlineOf(pod, witnesses.deletion ?? runsSince(since, seen), settings)
  const base: Base = {
    uid: drain.uid,
    pod,
    // When the containers have ended, the kubelet deletes the pod once more, with a grace of 0. That is no new decision.
    decidedAt: earliest([drain.decidedAt, decidedAt(pod)]),
    witnesses,
    since,
    // Once the deletion is known, the deadline only moves earlier, so facts may arrive in any order. Before that it was only an
    // estimate.
    deadline: drain.witnesses.deletion === undefined ? due : Math.min(due, drain.deadline),
    restartsAtStart: drain.restartsAtStart
  }
  const stays = whyItStays(base, { ...seen, pod }, now)
  if (stays !== undefined) return { ...base, phase: 'undone', at: now, why: stays }
  const next = nextPhase(base, drain, seen, now)
  return next.phase === 'gone' && isForgettable(next.at, seen, now, settings) ? undefined : next
}

/** When Kubernetes decided the deletion, according to this copy of the pod; `undefined`: there is no deletion. */
export const decidedAt = ({ deletionAt, deletionGraceMs, graceMs }: PodFact): Millis | undefined =>
  deletionAt === undefined ? undefined : deletionAt - (deletionGraceMs ?? graceMs)

/** The phase that follows from the verdict, the clock and whether the pod is still there. */
function nextPhase(base: Base, was: Course, seen: Seen, now: Millis): Drain {
  const verdict = was.verdict.kind === 'proven' ? was.verdict : (seen.verdict ?? was.verdict)
  // Older kubelets report a final phase before the last container has ended, so the grace must pass first.
  if (was.phase === 'gone' || seen.gone || (isOver(base.pod) && now >= base.deadline)) {
    return { ...base, phase: 'gone', at: was.phase === 'gone' ? was.at : now, verdict }
  }
  if (verdict.kind === 'proven') return { ...base, phase: 'proven', at: verdict.at, verdict }
  if (was.phase === 'expired') return { ...base, phase: 'expired', at: was.at, verdict }
  return now < base.deadline && !verdict.vain
    ? { ...base, phase: 'draining', verdict }
    : { ...base, phase: 'expired', at: now, verdict }
}

/**
 * Why the pod stays after all; `undefined` if it does not. Only a drain that began on a hook can be undone: a container
 * may restart although Kubernetes reported an end.
 */
function whyItStays(base: Base, seen: Seen, now: Millis): string | undefined {
  const { pod } = seen
  const certain = base.witnesses.deletion !== undefined || seen.gone || isOver(pod)
  if (certain || base.witnesses.deleted !== undefined) return undefined
  if (pod.restarts > base.restartsAtStart && pod.ready)
    return 'a container was restarted and the pod is Ready again'
  // A watch that is behind shows an older pod. So the reason below counts only if the watches of pods and of slices are both live.
  if (!seen.current) return undefined
  return now >= base.deadline && pod.ready ? 'the grace is over and the pod is still Ready' : undefined
}

/** When the grace of a pod that ends without a deletion began. A repeated hook does not restart the grace. */
export const runsSince = (at: Millis, { firstHookAt }: Seen): Millis => Math.min(at, firstHookAt ?? at)

/** Whether the drain can be forgotten. While a holder lists the pod, its entry must stay in the gateways, even if the owner is dead. */
const isForgettable = (goneAt: Millis, { listed }: Seen, now: Millis, settings: DrainSettings): boolean =>
  listed === false || (listed === undefined && now >= goneAt + settings.ghostMs)

/** When each witness was first seen. A hook counts from its arrival, which may be a little before this round. */
function record(
  known: Drain['witnesses'],
  says: readonly Witness[],
  seen: Seen,
  now: Millis
): Partial<Record<Witness, Millis>> {
  const hookAt = Math.min(seen.hookAt ?? now, now)
  if (says.every(witness => known[witness] !== undefined)) return known
  const added = says.map(witness => [witness, known[witness] ?? (witness === 'hook' ? hookAt : now)] as const)
  return { ...known, ...Object.fromEntries(added) }
}

/**
 * The newer copy of a pod, with addresses that its end may have removed, and with a deletion that the copy may lack. Usually this is
 * the newer copy itself: the same object in every round.
 */
function merge(known: PodFact, latest: PodFact): PodFact {
  const earlier = known.deletionAt !== undefined && known.deletionAt < (latest.deletionAt ?? Infinity)
  if (!earlier && latest.ips.length > 0 && latest.restarts >= known.restarts) return latest
  return {
    ...latest,
    ips: latest.ips.length > 0 ? latest.ips : known.ips,
    deletionAt: earlier ? known.deletionAt : latest.deletionAt,
    deletionGraceMs: earlier ? known.deletionGraceMs : latest.deletionGraceMs,
    restarts: Math.max(known.restarts, latest.restarts)
  }
}
