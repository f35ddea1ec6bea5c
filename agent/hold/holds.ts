import type { Ack } from '../drain/ack.ts'
import type { Hook } from '../drain/drain.ts'
import type { PodFact } from '../drain/facts.ts'

/** One hook to be held, and the pod it came from as far as the caller's identity shows. */
export interface HoldRequest {
  readonly hook: Hook
  readonly pod: PodFact
}

/** Whether the agent's word is worth anything right now. */
export type Vouch = { readonly ok: true } | { readonly ok: false; readonly why: string }

/** All that `hook/` knows of the rest of the agent. `round/` implements it; tests write it down in a few lines. */
export interface Holds {
  /**
   * Resolves with the answer, before the pod's deadline whatever is broken. Rejects with the signal's reason as soon as
   * the caller goes away or the agent lets go of it; the drain itself goes on.
   */
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  /** False while the watch has not synced or no gateway is known: the hook is refused, so its fallback runs. */
  canVouch(): Vouch
  /** How far the API server's clock is behind ours, in ms: what to add to `deletionAt`. */
  serverBehindMs(): number
  /** Pods of the watch that have this address: several where they share their host's. The address is normalised. */
  findByIp(ip: string): readonly PodFact[]
  /** The same, but read from the API server, because the watch may be behind. Rejects if there is no answer (own timeout). */
  askByIp(ip: string, signal: AbortSignal): Promise<readonly PodFact[]>
  /**
   * The pod by name, asking the API server where the watch does not know it. `undefined` where Kubernetes says that
   * there is none; rejects where Kubernetes could not be asked (own timeout). With a uid the watch's word counts only for
   * that very pod.
   */
  find(namespace: string, name: string, signal: AbortSignal, uid?: string): Promise<PodFact | undefined>
}
