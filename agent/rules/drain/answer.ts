import type { Ack, Unproved } from './ack.ts'
import { SKIP, readOptions } from './annotations.ts'
import { deadlineOf } from './budget.ts'
import type { Drain, Hook, Waiting } from './drain.ts'
import { eligible } from './eligible.ts'
import type { Millis } from './facts.ts'
import { overdueWords, proved, unproved, type Basis } from './proved.ts'
import type { DrainSettings, Seen } from './seen.ts'
import { runsSince } from './step.ts'

/** Either the answer, or a time: ask again at `until`, or earlier if anything changes. */
export type Answer =
  | { readonly kind: 'ack'; readonly ack: Ack }
  | { readonly kind: 'wait'; readonly until: Millis; readonly why: string }

const CHANGE = {
  skipped: `remove the annotation ${SKIP} to have the pod drained`,
  unproved:
    'run `apisix-drain doctor`: it says which part of APISIX the agent cannot see, and how to open it',
  deadline: 'give the pod a longer grace period, or a smaller reserve (annotation apisix-drain.io/reserve)',
  gone: 'nothing: the pod is gone'
} as const

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
  const yes = (basis: Basis): Answer => ({ kind: 'ack', ack: proved(hook, seen.pod, now, basis) })
  const no = (said: Parameters<typeof unproved>[3]): Answer => ({
    kind: 'ack',
    ack: unproved(hook, seen.pod, now, said)
  })
  const due = (deadline: Millis) => Math.min(deadline, hook.receivedAt + (hook.timeoutMs ?? Infinity))

  // The watches show no end of the pod, or no longer. But they report an end by the kubelet late, so the API server's answer decides.
  if (drain === undefined || drain.phase === 'undone')
    return withoutDrain(hook, seen, now, settings, { yes, no, due })
  const { verdict } = drain
  const end = due(drain.deadline)
  if (verdict.kind === 'proven') {
    if (unsealed === undefined) return yes({ on: 'gateways', verdict })
    const why = `${unsealed} has not sealed the pod since the proof: it is new, or has restarted`
    return now < end
      ? { kind: 'wait', until: end, why }
      : no({ result: 'deadline', why, change: CHANGE.unproved })
  }

  const until = hook.until ?? readOptions(drain.pod.annotations).until ?? 'drained'
  if (until === 'barrier' && isBarred(verdict) && !verdict.lastEndpoint)
    return yes({ on: 'seal', verdict, isOverdue: false })
  if (now < end && drain.phase === 'draining') {
    return { kind: 'wait', until: Math.min(end, Math.max(now, verdict.until ?? Infinity)), why: verdict.why }
  }
  const basis = overdueBasis(drain, verdict, now)
  if (basis) return yes(basis)
  if (drain.phase === 'gone')
    return no({ result: 'deadline', why: `the pod is gone: ${verdict.why}`, change: CHANGE.gone, verdict })
  const change = verdict.change ?? (verdict.floorOver ? CHANGE.unproved : CHANGE.deadline)
  return verdict.floorOver
    ? no({ result: 'deadline', why: verdict.why, change, verdict })
    : no({ result: 'deadline', why: `${overdueWords(hook, now)}: ${verdict.why}`, change, verdict })
}

/**
 * The evidence so far, if the time was up before the drain was proven; `undefined`: none. A grade that a gateway contradicts is no
 * evidence, because it only shows that time has passed.
 */
function overdueBasis({ deadline, since }: Drain, verdict: Waiting, now: Millis): Basis | undefined {
  // The pod was kept in use for as long as its grace allowed. A sleep now would only shorten the application's own shutdown.
  if (isLast(verdict) && now >= deadline && deadline > since) return { on: 'last-endpoint', verdict }
  if (isBarred(verdict)) return { on: 'seal', verdict, isOverdue: true }
  const { grade, contrary, lastEndpoint } = verdict
  if (grade === undefined || grade === 'timer' || contrary || lastEndpoint) return undefined
  return { on: 'gateways', grade, overdue: verdict }
}

const isBarred = (verdict: Waiting): verdict is Waiting & { barred: true } => verdict.barred
/**
 * A holder that could not be written still sends the pod requests that other pods could serve. Then the answer `last-endpoint` would be
 * wrong.
 */
const isLast = (verdict: Waiting): verdict is Waiting & { lastEndpoint: true } =>
  verdict.lastEndpoint && verdict.holders.every(({ state }) => state !== 'failed')

/** The answer for a hook whose drain is proven; `undefined`: it is not proven, or its seals have to be renewed first (see `answer`). */
export function answerProven(hook: Hook, drain: Drain, now: Millis, unsealed?: string): Ack | undefined {
  if (drain.phase === 'undone' || drain.verdict.kind !== 'proven' || unsealed !== undefined) return undefined
  return proved(hook, drain.pod, now, { on: 'gateways', verdict: drain.verdict })
}

interface Replies {
  readonly yes: (basis: Basis) => Answer
  readonly no: (said: Pick<Unproved, 'result' | 'why' | 'change'>) => Answer
  readonly due: (deadline: Millis) => Millis
}

/** The answer for a pod without a drain: the pod stays, opted out, is gone, or the API server has not answered yet. */
function withoutDrain(
  hook: Hook,
  seen: Seen,
  now: Millis,
  settings: DrainSettings,
  { yes, no, due }: Replies
): Answer {
  const asked = { ...seen, hookAt: seen.hookAt ?? hook.receivedAt }
  const eligibility = eligible(asked, settings)
  if (seen.gone)
    return no({ result: 'deadline', why: 'the pod is gone and no holder lists it', change: CHANGE.gone })
  if (!eligibility.ends && eligibility.reason === 'skip')
    return no({ result: 'skipped', why: eligibility.why, change: CHANGE.skipped })
  if (!eligibility.ends && eligibility.reason === 'stays' && seen.hookAsked)
    return yes({ on: 'kubernetes', asked: seen.hookAsked, why: eligibility.why })
  const why = eligibility.ends ? 'the drain is about to begin' : eligibility.why
  const end = due(deadlineOf(seen.pod, runsSince(hook.receivedAt, seen), settings))
  return now < end
    ? { kind: 'wait', until: end, why }
    : no({ result: 'deadline', why: `the time was up: ${why}`, change: CHANGE.deadline })
}
