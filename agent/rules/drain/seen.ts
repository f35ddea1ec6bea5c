import type { Stop, Verdict } from './drain.ts'
import type { Millis, PodFact } from './facts.ts'

/** Everything that the loop knows about one pod (one uid) in this round. */
export interface Seen {
  /** The pod as last seen, by the watch or in an answer of the API server. */
  readonly pod: PodFact
  /** The object is gone: a DELETED event, or it is missing from a complete list. Never true for a stale watch. */
  readonly gone: boolean
  /** The watches of pods and EndpointSlices are live, so a pod that they do not show as ending does not end. */
  readonly current: boolean
  /** When the first hook arrived that is still held. */
  readonly hookAt: Millis | undefined
  /** The held hooks that came from the pod's own address; empty without the barrier: only a seal can be taken back. */
  readonly calls: readonly Stop[]
  /** The ports of the pod to which something may route. */
  readonly routed: readonly number[]
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
