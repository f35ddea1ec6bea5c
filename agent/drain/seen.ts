import type { Verdict } from './drain.ts'
import type { Millis, PodFact } from './facts.ts'

/** When the API server was asked whether a pod ends, and when it was asked again: late enough for the report of a kubelet that ends the pod by itself. */
export interface Asked {
  readonly at: Millis
  readonly again: Millis
}

/** Everything that the loop knows about one pod (one uid) in this round. */
export interface Seen {
  /** The pod as last seen, by the watch or by asking the API server. */
  readonly pod: PodFact
  /** The object is gone: a DELETED event, or it is missing from a complete list. Never true for a stale watch. */
  readonly gone: boolean
  /** An EndpointSlice marks this uid as `terminating`. */
  readonly sliceTerminating: boolean
  /** The watches of pods and EndpointSlices are live: a pod that they do not show as ending does not end. */
  readonly current: boolean
  /** When the first hook arrived that is still held, or whose pod may still be within its grace. */
  readonly hookAt: Millis | undefined
  /** When the first hook of this pod arrived that only its end explains: its grace runs at the latest since then. */
  readonly firstHookAt?: Millis | undefined
  /** The API server's answer because of a hook: the pod ends, or it stays. `undefined`: not known yet. */
  readonly hookConfirmed: boolean | undefined
  /** When it was asked, if the answer was that the pod stays. */
  readonly hookAsked?: Asked | undefined
  /** Some holder or gateway still lists the pod. `undefined`: no inventory yet. */
  readonly listed: boolean | undefined
  /** The verdict on the evidence (`prove`); `undefined` before any was gathered. */
  readonly verdict: Verdict | undefined
}

/** The settings that drains depend on. All times in ms. */
export interface DrainSettings {
  /** What the pod keeps of its grace for its own shutdown, after the answer. */
  readonly reserveMs: number
  /** How far the API server's clock is behind ours: what to add to `deletionTimestamp`. Absent: they agree. */
  readonly serverBehindMs?: number
  /** Pods of some namespaces only are seen: the address of one that has finished may be that of a pod which is not. Absent: no. */
  readonly someNamespacesOnly?: boolean
  /** Whether DisruptionTarget alone starts a drain. It may be a false alarm, so by default it does not. */
  readonly onDisruption: boolean
  /** How long the drain of a pod that is gone is kept, in ms, while it is not known whether a holder lists it. */
  readonly ghostMs: number
}
