import type { Ack, Proved, Unproved, Drain, Hook, Proven, Waiting, DrainSettings, Seen } from './drain.ts'
import { SKIP, readOptions, RESERVE, formatDuration } from './annotations.ts'
import { eligible, mayStay } from './eligible.ts'
import type { Millis, PodFact } from './facts.ts'

/** Either the answer, or a time: ask again at `until`, or earlier if anything changes. */
export type Answer =
  | { readonly kind: 'ack'; readonly ack: Ack }
  | { readonly kind: 'wait'; readonly until: Millis; readonly why: string }

const CHANGE = {
  skipped: `remove the annotation ${SKIP} to have the pod drained`,
  unproved:
    'run `apisix-drain doctor`: it says which part of APISIX the agent cannot see, and how to open it',
  deadline: 'give the pod a longer grace period, or a smaller reserve (annotation apisix-drain.io/reserve)',
  gone: 'nothing: the pod is gone',
  restart: 'nothing: a container that restarts is held no longer than its own sleep',
  stays:
    'nothing, if a container of this pod restarts; if another pod ends, its hook has to name it (`?namespace=…&pod=…`)'
} as const

/** How late the watch may show that a pod ends, in ms. A container without a sleep of its own is held up by that if it restarts. */
const WATCH_MS = 2000

/**
 * The present answer for a held hook. Any number of hooks share one drain: those of two containers of a pod, or a repeated call. A call
 * after the drain is over gets the kept verdict. `?timeout=` can only shorten the wait.
 *
 * @param unsealed the name of a gateway that holds no seal any more, or not yet, although the drain was proven by seals
 */
export function answer(
  hook: Hook,
  drain: Drain | undefined,
  seen: Seen,
  now: Millis,
  settings: DrainSettings,
  unsealed?: string
): Answer {
  const no = (reason: Reason): Answer => ({ kind: 'ack', ack: unproved(hook, seen.pod, now, reason) })
  const due = (deadline: Millis) => Math.min(deadline, hook.receivedAt + (hook.timeoutMs ?? Infinity))
  const graceEnd = deadlineOf(seen.pod, hook.receivedAt, settings)

  if (drain === undefined || drain.phase === 'undone')
    return withoutDrain(hook, seen, now, settings, { no, due, graceEnd })
  const { verdict } = drain
  // A restart, an eviction and a host's shutdown look alike, so an app that hangs must not hold up its own restart.
  const isRestart = mayStay(drain)
  const ownEnd = hook.receivedAt + (hook.sleepMs || WATCH_MS)
  const end = due(isRestart ? Math.min(graceEnd, ownEnd) : drain.deadline)
  if (verdict.kind === 'proven') {
    const at = earliestOf(hook, drain.pod, verdict)
    if (unsealed === undefined && now >= (verdict.grade === 'barrier' ? Math.min(at, end) : at))
      return { kind: 'ack', ack: proved(hook, seen.pod, now, verdict) }
    if (unsealed === undefined && now < end)
      return { kind: 'wait', until: Math.min(at, end), why: 'the sleep that the hook replaces is not over' }
    const why =
      unsealed === undefined
        ? 'its own sleep is longer than its grace allows'
        : `${unsealed} has not sealed the pod since the proof: it is new, or has restarted`
    return now < end ? { kind: 'wait', until: end, why } : no({ why, change: CHANGE.unproved })
  }
  // The deadline is that of the first call.
  const isOpen = drain.phase === 'draining' || (isRestart && drain.phase === 'expired' && !verdict.vain)
  if (now < end && isOpen) {
    return { kind: 'wait', until: Math.min(end, Math.max(now, verdict.until ?? Infinity)), why: verdict.why }
  }
  if (drain.phase === 'gone')
    return no({ why: `the pod is gone: ${verdict.why}`, change: CHANGE.gone, verdict })
  const inTime = isRestart ? CHANGE.restart : CHANGE.deadline
  const { vain, change = vain ? CHANGE.unproved : inTime } = verdict
  const why = vain ? verdict.why : `${overdueWords(hook, now)}: ${verdict.why}`
  return no({ why, change, verdict })
}

/** The answer for a hook whose drain is proven; `undefined`: it is not proven, or its seals have to be renewed first (see `answer`). */
export function answerProven(hook: Hook, drain: Drain, now: Millis, unsealed?: string): Ack | undefined {
  if (drain.phase === 'undone' || drain.verdict.kind !== 'proven' || unsealed !== undefined) return undefined
  if (now < earliestOf(hook, drain.pod, drain.verdict)) return undefined
  return proved(hook, drain.pod, now, drain.verdict)
}

/**
 * When the hook may get its 200. A sleep may have covered other traffic than that of APISIX, so a replaced one stays the least time, unless
 * the pod says that there is none. Without the plugin, its own sleep has to pass once more from the removal.
 */
const earliestOf = (
  { receivedAt, sleepMs = 0, atLeastMs = 0 }: Hook,
  { annotations }: Pick<PodFact, 'annotations'>,
  proof: Proven
): Millis =>
  Math.max(
    readOptions(annotations).onlyApisix ? -Infinity : receivedAt + atLeastMs,
    proof.grade === 'barrier' ? -Infinity : proof.removedAt + sleepMs
  )

/** The answer for a pod without a drain: it stays, opted out, is gone, or the watch has not shown its end yet. */
function withoutDrain(
  hook: Hook,
  seen: Seen,
  now: Millis,
  settings: DrainSettings,
  { no, due, graceEnd }: Replies
): Answer {
  const eligibility = eligible({ ...seen, hookAt: seen.hookAt ?? hook.receivedAt }, settings)
  if (seen.gone) return no({ why: 'the pod is gone and no holder lists it', change: CHANGE.gone })
  if (!eligibility.ends && eligibility.reason === 'skip')
    return no({ result: 'stays', why: eligibility.why, change: CHANGE.skipped })
  const isToBegin = eligibility.ends
  const why = isToBegin ? 'the drain is about to begin' : eligibility.why
  // After a 503 the hook sleeps until its sleep is over, so within that nothing is lost by waiting for a late watch.
  const watchMs = Math.max(WATCH_MS, hook.sleepMs ?? 0)
  const until = due(isToBegin ? graceEnd : Math.min(graceEnd, hook.receivedAt + watchMs))
  if (now < until) return { kind: 'wait', until, why }
  if (!isToBegin) return no({ result: 'stays', why, change: CHANGE.stays })
  return no({ why: `the time was up: ${why}`, change: CHANGE.deadline })
}

interface Replies {
  readonly no: (reason: Reason) => Answer
  readonly due: (deadline: Millis) => Millis
  readonly graceEnd: Millis
}

/** A 200. It is made from a proof, so none exists without one. */
function proved(hook: Hook, pod: PodFact, now: Millis, proof: Proven): Proved {
  const { grade, gateways, forced, places = null, why } = proof
  return {
    status: 200,
    result: 'drained',
    evidence: grade,
    places,
    noReplacement: forced,
    ...body(hook, pod, now, why, proof),
    gateways
  }
}

/** What a 503 says. */
interface Reason extends Pick<Unproved, 'why' | 'change'> {
  readonly result?: Unproved['result']
  readonly verdict?: Waiting
}

/** A 503, with a reason and a remedy. */
function unproved(hook: Hook, pod: PodFact, now: Millis, reason: Reason): Unproved {
  const { result = 'unproved', why, change, verdict } = reason
  return { status: 503, result, evidence: 'none', change, ...body(hook, pod, now, why, verdict) }
}

/** How long the hook was held until its time was over. */
const overdueWords = ({ receivedAt }: Hook, now: Millis): string =>
  `the time was up after ${formatDuration(Math.round(Math.max(0, now - receivedAt)))}`

const body = (hook: Hook, pod: PodFact, now: Millis, why: string, verdict?: Proven | Waiting) => ({
  pod: { namespace: pod.namespace, name: pod.name, uid: hook.uid },
  elapsedMs: Math.max(0, Math.round(now - hook.receivedAt)),
  gateways: verdict?.gateways ?? [],
  holders: verdict?.holders ?? [],
  successors: (verdict && 'succeeded' in verdict && verdict.succeeded) || [],
  longLived: verdict?.longLived ?? null,
  why
})

type BudgetSettings = Pick<DrainSettings, 'reserveMs' | 'serverBehindMs'>

/**
 * The latest time for the answer to the hook (ms, the agent's clock). `since` is when the agent first saw that the pod ends: its
 * deletion if it saw that, otherwise the first witness.
 *
 *     since                      deadline            end of the grace
 *       |---------- hold ------------|----- reserve -----| SIGKILL
 *
 * The end is the earlier of two bounds, because `deletionTimestamp` is by the API server's clock and `since` by the agent's:
 * - `deletionTimestamp` itself. It is cut to whole seconds, so it is up to a second early, never late. Alone, this bound would be late by
 *   the time that the API server's clock is ahead of the agent's.
 * - `since` + the grace. No event comes before its commit, so this bound is late only by the delay of the agent's watch (milliseconds),
 *   whatever the clocks show. Alone, this bound would be late for an agent that started in the middle of a drain.
 *
 * The first bound is corrected by the measured time that the API server's clock is behind the agent's. Otherwise, if that clock were behind
 * by the whole grace, every answer would be due at once, before anything is proved. A second, shorter delete moves both bounds: Kubernetes
 * counts the new grace from the first delete. Ends that only the kubelet knows of (eviction under pressure, host shutdown) have no
 * deletionTimestamp, so the grace of the spec counts for them.
 *
 * The result is never before `since`: if the grace is not longer than the reserve, the answer is due at once.
 */
export function deadlineOf(pod: PodFact, since: Millis, settings: BudgetSettings): Millis {
  return Math.max(since, endOfGrace(pod, since, settings.serverBehindMs) - reserveOf(pod, settings))
}

/** When the kubelet kills a pod whose end was first known at `since`: the earlier of the two bounds above (ms, the agent's clock). */
export function endOfGrace(pod: PodFact, since: Millis, serverBehindMs = 0): Millis {
  const deletionAt = pod.deletionAt === undefined ? Infinity : pod.deletionAt + serverBehindMs
  return Math.min(deletionAt, since + (pod.deletionGraceMs ?? pod.graceMs))
}

/**
 * Problems with the time that a pod gives its hook, for `doctor`; empty if there are none. `needMs`: how long any proof takes.
 */
export function budgetProblems(
  pod: PodFact,
  { needMs: need = 0, ...settings }: BudgetSettings & { readonly needMs?: number }
): string[] {
  const options = readOptions(pod.annotations)
  if (options.skip) return [...options.problems]
  const reserve = reserveOf(pod, settings)
  const hold = pod.graceMs - reserve
  const grace = `terminationGracePeriodSeconds (${formatDuration(pod.graceMs)})`
  const lower = options.reserveMs === undefined ? 'drain.reserve' : RESERVE
  const problems = [...options.problems]
  if (hold <= 0)
    problems.push(
      `the reserve (${formatDuration(reserve)}) leaves nothing of ${grace}, so its hooks are answered at once: raise the grace or lower ${lower}`
    )
  else if (hold < need)
    problems.push(
      `a hook is held for at most ${formatDuration(hold)}, but a proof takes ${formatDuration(need)}: raise ${grace} or lower ${lower}`
    )
  return problems
}

/** The part of its grace that this pod keeps for its own shutdown, in ms. */
export const reserveOf = (pod: PodFact, settings: Pick<DrainSettings, 'reserveMs'>): number =>
  readOptions(pod.annotations).reserveMs ?? settings.reserveMs
