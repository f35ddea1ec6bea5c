import type { Ack, Hook } from '../../rules/drain/drain.ts'
import type { PodFact } from '../../rules/drain/facts.ts'

/** One hook to be held, and its pod according to the caller's identity. */
export interface HoldRequest {
  readonly hook: Hook
  readonly pod: PodFact
  /** The pod itself has sent it: a POST from an address that only this pod has. Absent: somebody has only named the pod. */
  readonly isOwn?: boolean
}

/** Whether the agent can vouch for an answer now. */
export type Vouch = { readonly ok: true } | { readonly ok: false; readonly why: string }

/** The interface between `hook/` and the rest of the agent. `round/` implements it; tests implement it in a few lines. */
export interface Holds {
  /**
   * Resolves with the answer before the pod's deadline, whatever fails. Rejects with the signal's reason as soon as the caller
   * disconnects or the agent drops the hook. The drain itself continues.
   */
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  /** Whether hooks may be held now (`vouch`). If not, the hook is refused, so its fallback runs. */
  canVouch(): Vouch
  /** How far the API server's clock is behind the agent's, in ms: add this to `deletionAt`. */
  serverBehindMs(): number
  /** Pods of the watch that have this address: several if they share their host's. The address is normalised. */
  findByIp(ip: string): readonly PodFact[]
  /** Like `findByIp`, but waits until the watch has shown all that the API server has now. Rejects if that takes too long. */
  freshByIp(ip: string, signal: AbortSignal): Promise<readonly PodFact[]>
  /** The pod by name, like `freshByIp`. `undefined` if the pod does not exist, or if its namespace is not watched. */
  find(namespace: string, name: string, signal: AbortSignal): Promise<PodFact | undefined>
}
