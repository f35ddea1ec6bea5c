import type { LongLived } from './long-lived.ts'
import type { GatewayReport, HolderReport, Hook, Proven } from './drain.ts'

interface Answered {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly elapsedMs: number
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
  /** See `Proven.succeeded`. */
  readonly successors: readonly string[]
  /** Websockets and streams that are still in flight to the pod: the pod ends them at SIGTERM. `null`: none, or not known. */
  readonly longLived: LongLived | null
  /** One sentence: why this answer, and why not better evidence. */
  readonly why: string
}

/**
 * A 200, which replaces the caller's own sleep: every gateway has sealed the pod, and no ordinary request to it is in flight. Without the
 * plugin: every gateway was seen without the pod, for as long as a sleep (evidence `observed`). Only `proved()` makes one, of a proof.
 */
export interface Proved extends Answered {
  readonly status: 200
  readonly result: 'drained'
  readonly evidence: Proven['grade']
  readonly gateways: Proven['gateways']
  /** In how many places the pod was listed. 0: nothing routes to it. `null`: not known. */
  readonly places: number | null
  /** No other pod could take over in time: a gateway that knew no other node answers 503 since the seal. */
  readonly noReplacement: boolean
}

/** A 503: `curl -f … || sleep 5` sleeps. `stays`: the pod does not end (a container restart), or it opts out. */
export interface Unproved extends Answered {
  readonly status: 503
  readonly result: 'unproved' | 'stays'
  readonly evidence: 'none'
  /** The change that an operator can make to get a proof. */
  readonly change: string
}

/** The answer to a preStop hook: the status and the JSON body of `POST /v1/prestop`. */
export type Ack = Proved | Unproved

/** Whether the limit of the call was over (`?timeout=`), not the grace of the pod. */
export const isOwnLimit = (
  { timeoutMs = Infinity }: Pick<Hook, 'timeoutMs'>,
  { status, elapsedMs }: Ack
): boolean => status === 503 && elapsedMs >= timeoutMs
