import type { LongLived } from './long-lived.ts'
import type { GatewayReport, Grade, HolderReport, Hook } from './drain.ts'

/**
 * Results that replace the caller's own sleep. Each needs evidence (`Basis` in `proved.ts`):
 *
 * - `drained`: every gateway has stopped choosing the pod, and no ordinary request to it is in flight (grade `barrier`)
 * - `removed`: removed from every holder, to the stated grade; requests in flight are not known
 * - `not-routed`: no holder lists the pod, and no other place can lead to it
 * - `last-endpoint`: kept in a holder as its last node, while the hook waited for a replacement until the deadline
 * - `not-terminating`: Kubernetes reports that the pod stays (a container restart); nothing was removed for it
 * - `deadline`: the time was up first; `evidence` names the grade that was proved by then
 */
export type ProvedResult =
  'drained' | 'removed' | 'not-routed' | 'last-endpoint' | 'not-terminating' | 'deadline'

/**
 * Results after which the caller's fallback must run:
 *
 * - `deadline`: the time was up and nothing was proved: the deadline, `?timeout=`, or the floor if `minimumEvidence` is `timer`
 * - `skipped`: the pod asks to be left alone (`apisix-drain.io/skip`); it keeps its own sleep
 */
type UnprovedResult = 'deadline' | 'skipped'

export type AckResult = ProvedResult | UnprovedResult

/** The kind of evidence that a 200 rests on. */
type RestsOn = 'gateways' | 'seal' | 'last-endpoint' | 'kubernetes'

interface Answered {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly elapsedMs: number
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
  /** See `Proven.succeeded`. */
  readonly successors: readonly string[]
  /** Websockets and streams that are still in flight to the pod: the pod ends them at SIGTERM. `null`: none, or not known. */
  readonly longLived: LongLived | null
  /** One sentence: why this result, and why not better evidence. */
  readonly why: string
}

/** A 200. Only `proved()` makes one. */
export interface Proved extends Answered {
  readonly status: 200
  readonly result: ProvedResult
  /** `none` if it rests on the API server's answer, or if a last endpoint was held without a grade. */
  readonly evidence: Grade | 'none'
  readonly restsOn: RestsOn
}

/** A 503: `curl -f … || sleep 5` sleeps. */
export interface Unproved extends Answered {
  readonly status: 503
  readonly result: UnprovedResult
  readonly evidence: 'none'
  /** The change that an operator can make to get a proof. */
  readonly change: string
}

/** The answer to a preStop hook: the status and the JSON body of `POST /v1/prestop`. */
export type Ack = Proved | Unproved

/** Whether the limit of the call was over (`?timeout=`), not the grace of the pod. */
export const isOwnLimit = (
  { timeoutMs = Infinity }: Pick<Hook, 'timeoutMs'>,
  { result, elapsedMs }: Ack
): boolean => result === 'deadline' && elapsedMs >= timeoutMs
