/** What one request came to, told when it is over (nginx's log phase). */
export interface AccessFact {
  /** When it ended: milliseconds since the epoch. */
  readonly time: number
  /** From its head to its end, in ms. */
  readonly elapsedMs: number
  readonly gateway: string
  readonly worker: number
  readonly method: string
  readonly path: string
  /** What the client was sent; 499 when it went away first. */
  readonly status: number
  /** Every node that was connected to, in order: the last one answered, if any did. */
  readonly nodes: readonly string[]
  /** The answer broke off: a node died in the middle of a body. */
  readonly truncated: boolean
  /** It was given a draining node, because nothing else could be picked. */
  readonly bypass: boolean
  /** Another node was picked when its body had been read. */
  readonly moved: boolean
  readonly upgraded: boolean
}

export type AccessHook = (fact: AccessFact) => void
