import { deadlineOf } from './answer.ts'
import type { Drain, Verdict, Waiting, Witness, DrainSettings, Seen } from './drain.ts'
import { backAgain, eligible, isOver, latestStops, mayStay, servedBy, witnessesOf } from './eligible.ts'
import { type Millis, type PodFact, earliest } from './facts.ts'

/**
 * The phases of a drain. No phase leads back to an earlier one, unless more of the pod has to be drained. A proven drain stays proven, even
 * if a writer puts the node back, because the plan repairs that. A deletion is never undone, whatever an older copy of the pod shows.
 *
 *     begin ─► draining ─► proven ──┐
 *                 │ └────► expired ─┤ (proven after all, if evidence comes late)
 *                 │                 ├─► gone ─► forgotten when no holder lists the pod
 *                 └─────────────────┴─► undone ─► forgotten one round later
 */
type Base = Pick<
  Drain,
  'uid' | 'pod' | 'decidedAt' | 'witnesses' | 'since' | 'deadline' | 'stops' | 'ports' | 'isWhole'
>

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

/** The drain of a pod that ends, or of a container that stops; `undefined` if there is no sign of that, or if the pod opted out. */
export function begin(seen: Seen, now: Millis, settings: DrainSettings): Drain | undefined {
  if (!eligible(seen, settings).ends) return undefined
  const base = baseOf(undefined, seen, { now, settings })
  return nextPhase(base, { phase: 'draining', verdict: NOTHING_YET }, seen, now)
}

/** The drain one round later; `undefined` = forget it. */
export function step(drain: Drain, seen: Seen, now: Millis, settings: DrainSettings): Drain | undefined {
  if (drain.phase === 'undone') return undefined
  const base = baseOf(drain, seen, { now, settings })
  const why = whyItStays(base, seen.current, now)
  if (why !== undefined) return { ...base, phase: 'undone', at: now, why }
  const grows = base.ports.length > drain.ports.length || (base.isWhole && !drain.isWhole)
  const was: Course = grows && drain.phase !== 'gone' ? { phase: 'draining', verdict: NOTHING_YET } : drain
  const next = nextPhase(base, was, grows ? { ...seen, verdict: undefined } : seen, now)
  return next.phase === 'gone' && isForgettable(next.at, seen, now, settings) ? undefined : next
}

function baseOf(
  was: Drain | undefined,
  seen: Seen,
  { now, settings }: { readonly now: Millis; readonly settings: DrainSettings }
): Base {
  const pod = was ? merge(was.pod, seen.pod) : seen.pod
  const witnesses = record(was?.witnesses ?? {}, witnessesOf({ ...seen, pod }), seen, now)
  const since = Math.min(was?.since ?? Infinity, ...Object.values(witnesses))
  const due = deadlineOf(pod, witnesses.deletion ?? since, settings)
  const stops = latestStops(was?.stops ?? [], seen.calls)
  // What is denied only grows: what a container served before its pod began to end is not lifted in between.
  const served = servedBy(stops, pod, seen.routed)
  const isWhole = was?.isWhole === true || !mayStay({ witnesses }) || served === undefined
  const ports = was?.ports ?? []
  return {
    uid: pod.uid,
    pod,
    // When the containers have ended, the kubelet deletes the pod once more, with a grace of 0. That is no new decision.
    decidedAt: earliest([was?.decidedAt, decidedAt(pod)]),
    witnesses,
    since,
    // Once the deletion is known, the deadline only moves earlier, so facts may arrive in any order. Before that it was only an
    // estimate.
    deadline: was?.witnesses.deletion === undefined ? due : Math.min(due, was.deadline),
    stops,
    ports: isWhole ? ports : [...new Set([...ports, ...served])],
    isWhole
  }
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

/** Why the pod serves on after all; `undefined` if it does not. Only a drain that began on hooks can be undone. */
function whyItStays(base: Base, isCurrent: boolean, now: Millis): string | undefined {
  if (!mayStay(base)) return undefined
  const whys = base.stops.map(stop => backAgain(stop, base.pod, now, isCurrent))
  return whys.includes(undefined) ? undefined : whys[0]
}

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
  const hookAt = Math.min(now, ...seen.calls.map(({ at }) => at))
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
  if (!earlier && latest.ips.length > 0) return latest
  return {
    ...latest,
    ips: latest.ips.length > 0 ? latest.ips : known.ips,
    deletionAt: earlier ? known.deletionAt : latest.deletionAt,
    deletionGraceMs: earlier ? known.deletionGraceMs : latest.deletionGraceMs
  }
}
