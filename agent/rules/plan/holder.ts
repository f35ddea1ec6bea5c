import { type NodeKey, type PodFact, type PodUid, nodeKey } from '../drain/facts.ts'
import type { Drain, Drains } from '../drain/drain.ts'
import { isOver } from '../drain/eligible.ts'

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

/** `upstreams/web`, `routes/r1/upstream`, `routes/r2/traffic-split/0/1` (rule 0, weighted upstream 1). */
export type HolderKey = string

/** `upstreams/ID`, the part that names of holders and of workers' places have in common. */
export const objectOf = (name: HolderKey): string => name.split('/', 2).join('/')

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

/** One node of one holder, and the ending pod that it leads to. */
export interface Match {
  readonly holder: Holder
  readonly node: HolderNode
  readonly drain: Drain
}

/** The most ports of a pod at its host's address. Each of them is an entry in every gateway. */
export const MOST_PORTS = 250

/** The ports of a pod that shares its host's address: those that it declares, and those of its Services. */
export const portsOnHost = (pod: PodFact, ports: readonly number[]): readonly number[] => [
  ...new Set([...pod.containerPorts, ...ports])
]

/** The node keys that a pod can have: bare IPs, or IPs with ports if the pod shares its host's address. */
export function nodesOf(pod: PodFact, ports: readonly number[]): NodeKey[] {
  if (!pod.hostNetwork) return pod.ips.map(ip => nodeKey(ip, undefined))
  const all = portsOnHost(pod, ports).slice(0, MOST_PORTS)
  return pod.ips.flatMap(ip => all.map(port => nodeKey(ip, port)))
}

/** The nodes that a drain denies; see `Drain.ports`. @param pod as it is now */
export const deniedNodes = (drain: Drain, pod: PodFact, ports: readonly number[]): NodeKey[] => [
  ...(drain.isWhole ? nodesOf(pod, ports) : []),
  ...pod.ips.flatMap(ip => drain.ports.map(port => nodeKey(ip, port)))
]

/**
 * Of the nodes of a pod at its host's address, those that no other pod has taken over. The next pod on the host often has the same ports,
 * but takes them over only once it is up.
 */
export function leftOnHost(
  world: World,
  { uid, ips }: PodFact,
  nodes: readonly NodeKey[]
): readonly NodeKey[] {
  const next = ips
    .flatMap(ip => world.ownersOf(ip))
    .filter(pod => pod.uid !== uid && pod.deletionAt === undefined && pod.hostNetwork && pod.ready)
  const taken = new Set(next.flatMap(pod => nodesOf(pod, world.portsOf(pod))))
  return nodes.filter(node => !taken.has(node))
}

/** Whether the plan removes the drain's pod: true unless the drain was undone. */
export const isEnding = (drain: Drain | undefined): drain is Drain =>
  drain !== undefined && drain.phase !== 'undone'

/**
 * The nodes that lead only to what this drain denies of its pod. Domain nodes never match, because their host is no pod IP. If a running pod with
 * another uid has the address of a node now, the node belongs to that pod. IPs are reused within a second, and the new pod must get
 * its requests at once.
 */
export function endingNodes(world: World, drains: Drains, drain: Drain): Match[] {
  return drain.pod.ips.flatMap(ip =>
    world.holdersOf(ip).flatMap(holder =>
      nodesAt(holder.nodes, ip)
        .filter(node => answersAt(world, drain.pod, node) && isDenied(drain, node))
        .filter(node => !isSomebodyElses(world, drains, node, drain))
        .map(node => ({ holder, node, drain }))
    )
  )
}

const isDenied = ({ isWhole, ports }: Drain, { port }: HolderNode): boolean =>
  isWhole || port === undefined || ports.includes(port)

/** Every pod object that this node leads to; several if an IP is shared or was given out again. */
function podsAt(world: World, node: HolderNode): PodFact[] {
  return world.ownersOf(node.host).filter(pod => answersAt(world, pod, node))
}

/** The pods of `podsAt` that do not end. Pods that opted out of drains count too. */
function livePodsAt(world: World, drains: Drains, node: HolderNode): PodFact[] {
  return podsAt(world, node).filter(pod => pod.deletionAt === undefined && isRunning(pod, drains))
}

/**
 * Whether the node serves: a live pod that is Ready, or an address outside of the pods' ranges, which the agent does not judge. A node whose
 * pod is gone or not known yet does not serve.
 */
export const serves = (world: World, drains: Drains, node: HolderNode): boolean =>
  podsAt(world, node).length === 0
    ? !world.isPodsPlace(node.host)
    : livePodsAt(world, drains, node).some(({ ready }) => ready)

/** Whether another pod has the node's address now, and is not drained. It may even be ending, if it opted out of drains. */
const isSomebodyElses = (world: World, drains: Drains, node: HolderNode, drain: Drain): boolean =>
  podsAt(world, node).some(pod => pod.uid !== drain.uid && isRunning(pod, drains))

const isRunning = (pod: PodFact, drains: Drains): boolean => !isOver(pod) && !isEnding(drains.get(pod.uid))

/**
 * Whether the node leads to this pod. A pod with its own IP has every port. A pod at its host's IP has only its own ports, but a node
 * without a port may lead to it too.
 */
const answersAt = (world: World, pod: PodFact, node: HolderNode): boolean =>
  !pod.hostNetwork ||
  node.port === undefined ||
  pod.containerPorts.includes(node.port) ||
  world.portsOf(pod).includes(node.port)

type Nodes = readonly HolderNode[]

/** Below this length a scan is as fast as an index. */
const FEW = 16
const NONE: Nodes = []
/** Keyed by the list itself, which never changes: a holder that is read again has a new list. */
const indexes = new WeakMap<Nodes, ReadonlyMap<string, Nodes>>()

/**
 * The nodes of a list that have this host, in the order of the list. Hundreds of pods of one holder with thousands of nodes may end at
 * once, and every round searches the nodes of each pod. So a long list gets an index at its first use.
 */
export function nodesAt(nodes: Nodes, host: string): Nodes {
  if (nodes.length < FEW) return nodes.filter(node => node.host === host)
  let index = indexes.get(nodes)
  if (!index) {
    index = Map.groupBy(nodes, node => node.host)
    indexes.set(nodes, index)
  }
  return index.get(host) ?? NONE
}

/**
 * The key of a domain name, the same in the plugin (ways.lua): `web.shop.svc` and `pod.web.shop.svc`, under any domain, are `web.shop`, a name
 * of Service `web` in namespace `shop`, as `web` is.
 */
export function nameKey(host: string): string {
  const name = host.toLowerCase().replace(/\.$/, '')
  const labels = name.split('.')
  const svc = labels.indexOf('svc', 2)
  return svc < 0 ? name : `${labels[svc - 2]}.${labels[svc - 1]}`
}
