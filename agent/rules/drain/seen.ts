import type { Verdict } from './drain.ts'
import type { Millis, PodFact } from './facts.ts'

/**
 * When the API server was asked whether a pod ends, and when it is asked again. By then, a kubelet that ends the pod by itself has
 * reported it.
 */
export interface Asked {
  readonly at: Millis
  readonly again: Millis
}

/** Everything that the loop knows about one pod (one uid) in this round. */
export interface Seen {
  /** The pod as last seen, by the watch or in an answer of the API server. */
  readonly pod: PodFact
  /** The object is gone: a DELETED event, or it is missing from a complete list. Never true for a stale watch. */
  readonly gone: boolean
  /** An EndpointSlice marks this uid as `terminating`. */
  readonly sliceTerminating: boolean
  /** The watches of pods and EndpointSlices are live, so a pod that they do not show as ending does not end. */
  readonly current: boolean
  /** When the first hook arrived that is still held, or whose pod may still be within its grace. */
  readonly hookAt: Millis | undefined
  /** When the first hook of this pod arrived that only the pod's end explains. The grace began at this time at the latest. */
  readonly firstHookAt?: Millis | undefined
  /** The API server's answer to a question about a hook: the pod ends, or it stays. `undefined`: not known yet. */
  readonly hookConfirmed: boolean | undefined
  /** When the API server was asked, if its answer was that the pod stays. */
  readonly hookAsked?: Asked | undefined
  /** Some holder or gateway still lists the pod. `undefined`: no inventory yet. */
  readonly listed: boolean | undefined
  /** The verdict on the evidence (`prove`); `undefined` before any was gathered. */
  readonly verdict: Verdict | undefined
}

/** The settings that drains depend on. All times in ms. */
export interface DrainSettings {
  /** The part of its grace that the pod keeps for its own shutdown, after the answer. */
  readonly reserveMs: number
  /** How far the API server's clock is behind the agent's; it is added to `deletionTimestamp`. Absent: they agree. */
  readonly serverBehindMs?: number
  /** Only pods of some namespaces are seen, so an unseen pod may have the address of a finished one. Absent: no. */
  readonly someNamespacesOnly?: boolean
  /** How long the drain of a gone pod is kept while the agent does not know whether a holder lists the pod, in ms. */
  readonly ghostMs: number
}
