/**
 * `all`: with slow answers (100 to 800 ms), and with uploads whose body takes 0.5 to 2 s. A gateway picks their node long
 * before it connects. `no-uploads`: without the uploads. `quick`: without both. `with-websockets`: `all`, and websockets
 * that are open for 0.5 to 3 s.
 */
export const TRAFFICS = ['all', 'no-uploads', 'quick', 'with-websockets'] as const
export type Traffic = (typeof TRAFFICS)[number]

/** The requests to send, and their targets. All times in ms. */
export interface LoadOptions {
  /** Base URLs of the gateways, used in turn. */
  readonly targets: readonly string[]
  readonly path: string
  /** Requests a second. None is sent while those of a quarter second have no answer: a machine too busy for the rate gets fewer. */
  readonly rate: number
  readonly seed: number
  readonly traffic: Traffic
  /** A request without a complete answer after this time has failed. */
  readonly timeoutMs: number
}

/**
 * How a request failed. Anything but a 2xx with its whole body is a failure. A websocket fails if it does not open, or if it
 * breaks off without a close frame (`truncated`).
 */
export type FailureKind = 'status' | 'reset' | 'timeout' | 'truncated'

export type RequestKind = 'get' | 'get-new-connection' | 'post' | 'slow' | 'upload' | 'websocket'

export interface LoadFailure {
  /** When the request was sent and when it failed, by `now()`. */
  readonly sentAt: number
  readonly at: number
  readonly request: RequestKind
  readonly kind: FailureKind
  readonly status: number | undefined
  readonly pod: string | undefined
  readonly detail: string
}

export interface LoadCounts {
  readonly requests: number
  readonly failed: number
  readonly byKind: Readonly<Record<FailureKind, number>>
  readonly byRequest: Readonly<Record<RequestKind, { readonly requests: number; readonly failed: number }>>
  /** Sent and not yet answered. */
  readonly pending: number
}

export interface LoadResult extends LoadCounts {
  /** The first failures, for diagnosis. */
  readonly failures: readonly LoadFailure[]
}

/** To the load's process: send to these from now on; without targets, end. */
export interface LoadOrder {
  readonly targets?: readonly string[]
}

/** A message from the load's process. `moved`: every request to earlier targets is over. */
export type LoadMessage =
  | { readonly type: 'moved' }
  | { readonly type: 'progress'; readonly counts: LoadCounts }
  | { readonly type: 'result'; readonly result: LoadResult }
