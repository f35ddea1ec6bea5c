import type { NodeKey, PodFact, PodUid } from '../drain/facts.ts'

/** The Admin API collections that can list nodes (apisix/admin/upstreams.lua checks the same set for traffic-split). */
export type Resource =
  | 'upstreams'
  | 'services'
  | 'routes'
  | 'stream_routes'
  | 'plugin_configs'
  | 'consumers'
  | 'consumer_groups'
  | 'global_rules'

/** `upstreams/web`, `routes/r1/upstream`, `routes/r2/plugins/traffic-split/0/1` (rule 0, weighted upstream 1). */
export type HolderKey = string

/** The other writer of a holder, as its labels and names show. */
export type Owner = 'ingress-controller-1' | 'ingress-controller-2' | 'unknown'

export interface HolderNode {
  /** Canonical, see `nodeKey`. */
  readonly key: NodeKey
  /** Without brackets. May be a domain name. */
  readonly host: string
  readonly port: number | undefined
  readonly weight: number
  /** Exactly as it came from APISIX: the map key, or the array element with all its fields. */
  readonly raw: string | Readonly<Record<string, unknown>>
}

/** An APISIX object that lists nodes. */
export interface Holder {
  readonly key: HolderKey
  readonly resource: Resource
  readonly id: string
  /** The path in the object to the upstream that lists the nodes: `[]`, `['upstream']`, `['plugins', 'traffic-split', …]`. */
  readonly path: readonly (string | number)[]
  /** How the nodes are written. A removal is a `null` merge in a map, and a whole new array in an array. */
  readonly form: 'map' | 'array'
  readonly nodes: readonly HolderNode[]
  /** Set if APISIX finds the nodes itself (`discovery_type`): then the agent can edit nothing here. */
  readonly discovery: { readonly type: string; readonly service: string } | undefined
  /** Proxied as L4 only: in a stream route, or of scheme tcp, tls or udp. */
  readonly l4?: boolean
  /** What APISIX connects to past its balancer. The inventory lists it apart. */
  readonly connects?: boolean
  readonly owner: Owner
  /**
   * The namespace of the Kubernetes objects from which an ingress controller made the holder. Absent: not known, such as for an object made
   * by hand.
   */
  readonly namespace?: string
  readonly labels: Readonly<Record<string, string>>
  readonly name: string | undefined
  /** etcd's mod_revision of the object when it was read; 0 if the answer did not contain it (answers to writes do not). */
  readonly revision: number
}

/** Whether the holder is known to belong to another namespace. A holder of unknown origin counts as the pod's own. */
export const isOfOtherNamespace = (
  { namespace }: Pick<PodFact, 'namespace'>,
  holder: Pick<Holder, 'namespace'>
): boolean => holder.namespace !== undefined && holder.namespace !== namespace

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
