import type { GatewayReport, Grade, HolderReport } from './drain.ts'

/**
 * What takes the caller's own sleep away, so each needs evidence (`Basis` in `proved.ts`):
 *
 * - `drained`: every gateway stopped choosing the pod and nothing is in flight to it (grade `barrier`)
 * - `removed`: out of every holder, to the stated grade; what is in flight is not known
 * - `not-routed`: no holder lists the pod
 * - `last-endpoint`: kept in a holder as its last node, and held until the deadline for a replacement
 * - `not-terminating`: Kubernetes says the pod stays (a container restart); nothing was removed for it
 * - `deadline`: the time was up first, and what was proved by then is in `evidence`
 */
export type ProvedResult =
  'drained' | 'removed' | 'not-routed' | 'last-endpoint' | 'not-terminating' | 'deadline'

/**
 * After these the caller's fallback has to run:
 *
 * - `deadline`: the time was up with nothing proved: the deadline, `?timeout=`, or the floor where `minimumEvidence` is `timer`
 * - `skipped`: the pod asks to be left alone (`apisix-drain.io/skip`); it keeps its own sleep
 */
type UnprovedResult = 'deadline' | 'skipped'

export type AckResult = ProvedResult | UnprovedResult

/** What kind of evidence a 200 rests on. */
type RestsOn = 'gateways' | 'seal' | 'last-endpoint' | 'kubernetes'

interface Answered {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly elapsedMs: number
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
  /** One sentence: why this result, and why not better evidence. */
  readonly why: string
}

/** A 200. Made by `proved()` and nowhere else. */
export interface Proved extends Answered {
  readonly status: 200
  readonly result: ProvedResult
  /** `none` where it rests on the word of Kubernetes, or where a last endpoint was held without a grade. */
  readonly evidence: Grade | 'none'
  readonly restsOn: RestsOn
}

/** A 503: `curl -f … || sleep 5` sleeps. */
export interface Unproved extends Answered {
  readonly status: 503
  readonly result: UnprovedResult
  /** The helper of 0.1.0 falls back by it. */
  readonly evidence: 'none'
  /** What the operator can change to get a proof. */
  readonly change: string
}

/** The answer to a preStop hook: the status and the JSON body of `POST /v1/prestop`. */
export type Ack = Proved | Unproved
