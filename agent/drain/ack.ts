import type { GatewayReport, Grade, HolderReport } from './drain.ts'

/**
 * - `drained`: every gateway stopped choosing the pod and nothing is in flight to it (grade `barrier`)
 * - `removed`: out of every holder, to the stated grade; what is in flight is not known
 * - `not-routed`: no holder lists the pod
 * - `last-endpoint`: kept in a holder as its last node; held until the deadline for a replacement
 * - `not-terminating`: Kubernetes says the pod stays (a container restart); nothing was removed for it
 * - `skipped`: the pod asks to be left alone (`apisix-drain.io/skip`); nothing was removed for it
 * - `deadline`: the time was up first
 */
export type AckResult =
  'drained' | 'removed' | 'not-routed' | 'last-endpoint' | 'not-terminating' | 'skipped' | 'deadline'

/** The answer to a preStop hook: the JSON body of `POST /v1/prestop`. */
export interface Ack {
  readonly result: AckResult
  /** `none` where nothing was waited for (`not-terminating`, `skipped`). */
  readonly evidence: Grade | 'none'
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly elapsedMs: number
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
  /** One sentence: why this result, and why not better evidence. */
  readonly why: string
}
