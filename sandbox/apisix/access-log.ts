import type { IncomingMessage } from 'node:http'

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
  readonly upgraded: boolean
}

export type AccessHook = (fact: AccessFact) => void

/** Returns the function that reports the end of a request, which begins now. */
export function reportOf(
  on: { readonly gateway: string; readonly worker: { readonly id: number }; readonly onAccess: AccessHook },
  { method = 'GET', url: path = '/' }: IncomingMessage
): (end: Pick<AccessFact, 'status' | 'nodes' | 'truncated' | 'upgraded'>) => void {
  const { gateway, worker } = on
  const began = performance.now()
  return end =>
    on.onAccess({
      time: Date.now(),
      elapsedMs: performance.now() - began,
      gateway,
      worker: worker.id,
      method,
      path,
      ...end
    })
}
