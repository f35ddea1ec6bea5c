import type { Ack, AckResult } from './ack.ts'
import { readOptions } from './annotations.ts'
import { deadlineOf } from './budget.ts'
import type { Drain, Grade, Hook, Verdict } from './drain.ts'
import { formatDuration } from './duration.ts'
import { eligible } from './eligible.ts'
import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'

/** Either the answer, or: ask again at `until` at the latest, or as soon as something changes. */
export type Answer =
  | { readonly kind: 'ack'; readonly ack: Ack }
  | { readonly kind: 'wait'; readonly until: Millis; readonly why: string }

/**
 * What a held hook is told now. Any number of hooks share one drain: two containers of a pod, a repeated call, one that
 * comes after the drain is over and gets the verdict that was kept. `?timeout=` can only shorten the wait.
 */
export function answer(
  hook: Hook,
  drain: Drain | undefined,
  seen: Seen,
  now: Millis,
  settings: DrainSettings
): Answer {
  const reply = (result: AckResult, evidence: Grade | 'none', why: string, verdict?: Verdict): Answer => ({
    kind: 'ack',
    ack: ackOf(hook, seen.pod, now, { result, evidence, why, verdict })
  })
  const due = (deadline: Millis) => Math.min(deadline, hook.receivedAt + (hook.timeoutMs ?? Infinity))

  if (drain === undefined) return withoutDrain(hook, seen, now, settings, reply, due)
  if (drain.phase === 'undone') return reply('not-terminating', 'none', drain.why)

  const { verdict } = drain
  if (verdict.kind === 'proven') return reply(verdict.result, verdict.grade, verdict.why, verdict)
  const until = hook.until ?? readOptions(drain.pod.annotations).until ?? 'drained'
  if (until === 'barrier' && verdict.barred && !verdict.lastEndpoint) {
    return reply('removed', 'barrier', `every gateway has sealed it; not waited for: ${verdict.why}`, verdict)
  }
  const end = due(drain.deadline)
  if (now < end && drain.phase !== 'gone') {
    return { kind: 'wait', until: Math.min(end, Math.max(now, verdict.until ?? Infinity)), why: verdict.why }
  }
  const held = formatDuration(Math.round(Math.max(0, now - hook.receivedAt)))
  const over = drain.phase === 'gone' ? 'the pod is gone' : `the time was up after ${held}`
  const result = verdict.lastEndpoint ? 'last-endpoint' : 'deadline'
  return reply(result, verdict.grade ?? 'none', `${over}: ${verdict.why}`, verdict)
}

/** What a hook is told whose drain is proven: it stays proven, so nothing that is seen later changes it. `undefined`: it is not. */
export function answerProven(hook: Hook, drain: Drain, now: Millis): Ack | undefined {
  if (drain.phase === 'undone' || drain.verdict.kind !== 'proven') return undefined
  const { result, grade, why } = drain.verdict
  return ackOf(hook, drain.pod, now, { result, evidence: grade, why, verdict: drain.verdict })
}

function ackOf(
  hook: Hook,
  pod: PodFact,
  now: Millis,
  {
    result,
    evidence,
    why,
    verdict
  }: Pick<Ack, 'result' | 'evidence' | 'why'> & { readonly verdict: Verdict | undefined }
): Ack {
  return {
    result,
    evidence,
    pod: { namespace: pod.namespace, name: pod.name, uid: hook.uid },
    elapsedMs: Math.max(0, Math.round(now - hook.receivedAt)),
    gateways: verdict?.gateways ?? [],
    holders: verdict?.holders ?? [],
    why
  }
}

/** A pod that is not being drained: it stays, asks to be left alone, has long gone, or nobody knows yet. */
function withoutDrain(
  hook: Hook,
  seen: Seen,
  now: Millis,
  settings: DrainSettings,
  reply: (result: AckResult, evidence: 'none', why: string) => Answer,
  due: (deadline: Millis) => Millis
): Answer {
  const asked = { ...seen, hookAt: seen.hookAt ?? hook.receivedAt }
  const eligibility = eligible(asked, settings)
  if (seen.gone) return reply('not-routed', 'none', 'the pod is gone and no holder lists it')
  if (!eligibility.ends && eligibility.reason === 'skip') return reply('skipped', 'none', eligibility.why)
  if (!eligibility.ends && eligibility.reason === 'stays')
    return reply('not-terminating', 'none', eligibility.why)
  const why = eligibility.ends ? 'the drain is about to begin' : eligibility.why
  const end = due(deadlineOf(seen.pod, hook.receivedAt, settings))
  return now < end ? { kind: 'wait', until: end, why } : reply('deadline', 'none', `the time was up: ${why}`)
}
