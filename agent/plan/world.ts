import type { Millis, PodFact, PodUid } from '../drain/facts.ts'
import type { Holder, Owner } from './holder.ts'

/** The input of a plan. Lookups, not lists: a plan for 500 drains looks only at the holders that list them. */
export interface World {
  holders(): Iterable<Holder>
  /** The holders with a node at this host (an IP without brackets, canonical as in `PodFact.ips`). */
  holdersOf(host: string): readonly Holder[]
  /** Every pod object with this IP: several share it with `hostNetwork`, or when an ended pod's IP was given out again. */
  ownersOf(ip: string): readonly PodFact[]
  /**
   * For an address that no known pod has: whether pods have such addresses, so that its pod is gone or not known yet. It is then
   * not a machine that could take over.
   */
  isPodsPlace(host: string): boolean
  /** The target ports at which EndpointSlices list this pod. */
  portsOf(pod: Pick<PodFact, 'uid' | 'namespace'>): readonly number[]
}

export interface PlanSettings {
  /** Decide everything, write nothing. */
  readonly dryRun: boolean
  /** Drains whose address may be another pod's by now without the agent's knowledge. Absent: none. */
  readonly unsure?: ReadonlySet<PodUid>
  /** API-driven standalone: every gateway has its own document, and nothing is ever written. Absent: no. */
  readonly standalone?: boolean
  /** Drains that no barrier covers on some gateway, so that only the removal itself keeps requests away. Absent: none. */
  readonly unbarred?: ReadonlySet<PodUid>
  /** How long after a drain began a holder is left to the ingress controller that owns it, in ms; 0 = not at all. */
  readonly deferMs: number
  /** How long each owner usually takes to remove a node, in ms (`ownersTime`). Without a barrier, the agent waits this long. Absent: not at all. */
  readonly ownersMs?: (owner: Owner) => Millis
}
