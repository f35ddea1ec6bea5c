import type { PodFact, PodUid } from '../drain/facts.ts'
import type { Holder } from './holder.ts'

/** The input of a plan, as look-ups instead of lists: a plan for 500 drains reads only the holders that list their pods. */
export interface World {
  holders(): Iterable<Holder>
  /** The holders with a node at this host (an IP without brackets, canonical as in `PodFact.ips`). */
  holdersOf(host: string): readonly Holder[]
  /** Every pod object with this IP. There are several with `hostNetwork`, or if a new pod got an ended pod's IP. */
  ownersOf(ip: string): readonly PodFact[]
  /**
   * For an address that no known pod has: whether only pods have such addresses. If so, its pod is gone or not known yet. Otherwise the
   * address may be a machine that could take over.
   */
  isPodsPlace(host: string): boolean
  /** The target ports at which EndpointSlices list this pod. */
  portsOf(pod: Pick<PodFact, 'uid' | 'namespace'>): readonly number[]
}

export interface PlanSettings {
  /** The agent decides everything and writes nothing. */
  readonly dryRun: boolean
  /** Drains whose address another pod may have by now, unseen by the agent. Absent: none. */
  readonly unsure?: ReadonlySet<PodUid>
  /** API-driven standalone mode: every gateway has its own document, and the agent never writes. Absent: no. */
  readonly standalone?: boolean
  /** Some gateway has never had a barrier since this agent began, so only the removal keeps its requests away. Absent: no. */
  readonly unbarred?: boolean
}
