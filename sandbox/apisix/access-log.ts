/** The result of one request, reported when it is over (nginx's log phase). */
export interface AccessFact {
  /** When the request ended, in milliseconds since the epoch. */
  readonly time: number
  /** From the request's head to its end, in ms. */
  readonly elapsedMs: number
  readonly gateway: string
  readonly worker: number
  readonly method: string
  readonly path: string
  /** The status sent to the client; 499 if the client disconnected first. */
  readonly status: number
  /** Every node that the gateway connected to, in order. If a node answered, it is the last one here. */
  readonly nodes: readonly string[]
  /** The answer broke off: a node died in the middle of a body. */
  readonly truncated: boolean
  /** The request got a draining node, because no other node could be picked. */
  readonly bypass: boolean
  /** Another node was picked after the request's body had been read. */
  readonly moved: boolean
  readonly upgraded: boolean
}

export type AccessHook = (fact: AccessFact) => void
