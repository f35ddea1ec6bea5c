import type { Proved, ProvedResult, Unproved } from './ack.ts'
import type { Grade, Hook, Proven, Waiting } from './drain.ts'
import { formatDuration } from './duration.ts'
import type { Millis, PodFact } from './facts.ts'
import type { Asked } from './seen.ts'

/**
 * The evidence of a 200. No 200 exists without it. Each kind contains its observation:
 *
 * - `gateways`: the verdict of the proof, with a grade that every gateway reached
 * - `seal`: every gateway has sealed the entry, and the caller does not wait for requests in flight
 * - `last-endpoint`: a holder lists no other node, and the pod was kept in use until its deadline
 * - `kubernetes`: the API server was asked about this hook, and again after KUBELET_STATUS_DELAY_MS; both times the pod stays
 */
export type Basis =
  | { readonly on: 'gateways'; readonly verdict: Proven }
  | { readonly on: 'gateways'; readonly grade: Proven['grade']; readonly overdue: Waiting }
  | {
      readonly on: 'seal'
      readonly verdict: Waiting & { readonly barred: true }
      readonly isOverdue: boolean
    }
  | { readonly on: 'last-endpoint'; readonly verdict: Waiting & { readonly lastEndpoint: true } }
  | { readonly on: 'kubernetes'; readonly asked: Asked; readonly why: string }

interface Claim {
  readonly result: ProvedResult
  readonly evidence: Grade | 'none'
  readonly why: string
  readonly verdict?: Pick<Waiting, 'gateways' | 'holders'> & Partial<Pick<Proven, 'succeeded' | 'longLived'>>
}

/** A 200. Its result and grade follow from the evidence, so neither can be claimed without evidence. */
export function proved(hook: Hook, pod: PodFact, now: Millis, basis: Basis): Proved {
  const { result, evidence, why, verdict } = claimOf(basis, overdueWords(hook, now))
  return { status: 200, result, evidence, restsOn: basis.on, ...body(hook, pod, now, why, verdict) }
}

/** A 503, with a reason and a remedy. */
export function unproved(
  hook: Hook,
  pod: PodFact,
  now: Millis,
  said: Pick<Unproved, 'result' | 'why' | 'change'> & { readonly verdict?: Waiting }
): Unproved {
  const { result, why, change, verdict } = said
  return { status: 503, result, evidence: 'none', change, ...body(hook, pod, now, why, verdict) }
}

function claimOf(basis: Basis, overdue: string): Claim {
  if (basis.on === 'gateways' && 'verdict' in basis) {
    const { verdict } = basis
    return { result: verdict.result, evidence: verdict.grade, why: verdict.why, verdict }
  }
  if (basis.on === 'gateways') {
    const { grade, overdue: verdict } = basis
    return { result: 'deadline', evidence: grade, why: `${overdue}: ${verdict.why}`, verdict }
  }
  if (basis.on === 'kubernetes') {
    return {
      result: 'not-terminating',
      evidence: 'none',
      why: `${basis.why}; ${askedWords(basis.asked)}`
    }
  }
  const { verdict } = basis
  const evidence = verdict.grade ?? 'none'
  if (basis.on === 'last-endpoint')
    return { result: 'last-endpoint', evidence, why: `${overdue}: ${verdict.why}`, verdict }
  const left = `every gateway has sealed it; not waited for: ${verdict.why}`
  return basis.isOverdue
    ? { result: 'deadline', evidence, why: `${overdue}: ${left}`, verdict }
    : { result: 'removed', evidence: 'barrier', why: left, verdict }
}

const askedWords = ({ at, again }: Asked): string =>
  again > at ? `asked twice, ${formatDuration(Math.round(again - at))} apart` : 'asked once'

/** How long the hook was held until its time was over. */
export const overdueWords = ({ receivedAt }: Hook, now: Millis): string =>
  `the time was up after ${formatDuration(Math.round(Math.max(0, now - receivedAt)))}`

const body = (hook: Hook, pod: PodFact, now: Millis, why: string, verdict: Claim['verdict']) => ({
  pod: { namespace: pod.namespace, name: pod.name, uid: hook.uid },
  elapsedMs: Math.max(0, Math.round(now - hook.receivedAt)),
  gateways: verdict?.gateways ?? [],
  holders: verdict?.holders ?? [],
  successors: verdict?.succeeded ?? [],
  longLived: verdict?.longLived ?? null,
  why
})
