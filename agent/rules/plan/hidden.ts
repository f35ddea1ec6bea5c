import type { EndpointFact, NodeKey, PodFact, ServiceFact } from '../drain/facts.ts'
import {
  type Holder,
  type HolderKey,
  type HolderNode,
  type World,
  MOST_PORTS,
  portsOnHost,
  nodesAt,
  keysOfName,
  keysOfService
} from './holder.ts'

/** A place in APISIX that may lead to a pod without listing its address, or that no evidence covers. */
export interface HiddenPlace {
  readonly holder: HolderKey
  /** Absent if the place is not a single node. */
  readonly node?: string | undefined
  /** Why the place may lead to the pod, and a remedy (`change`). */
  readonly why: string
  readonly change: string
  /** The place counts only until the agent learns a fact that is missing now. Any other one rules a proof out. */
  readonly isPassing?: true
}

/** A node that a question has found, in the list of this holder. */
interface Found {
  readonly holder: HolderKey
  readonly node: NodeKey
  readonly host: string
  readonly port: number | undefined
  /** APISIX connects to it past its balancer. */
  readonly connects?: boolean | undefined
}

export interface Answers {
  /** Answers a question: the nodes with this address, key of a name (`keysOfName`), or port (`port/30080`). */
  readonly find: (question: string) => readonly Found[]
  /** The pod's own address in what APISIX connects to past its balancer. */
  readonly past: readonly Found[]
}

/** The lists that answer: those with a node at a host, all names in them, and all of them. */
interface Lists {
  readonly at: (host: string) => readonly Holder[]
  readonly names: Iterable<string>
  readonly all: () => Iterable<Holder>
}

/** The answers of lists. Names and ports are indexed at first use, because few pods need them. */
export function answersOf({ at, names, all }: Lists): (pod: Pick<PodFact, 'ips'>) => Answers {
  const foundIn = (list: Holder, { key: node, host, port }: HolderNode) =>
    ({ holder: list.key, node, host, port, connects: list.connects }) satisfies Found
  const of = (host: string) =>
    at(host).flatMap(holder => nodesAt(holder.nodes, host).map(node => foundIn(holder, node)))
  let hosts: ReadonlyMap<string, readonly (readonly [string, string])[]> | undefined
  let ports: ReadonlyMap<string, readonly Found[]> | undefined
  const find = (question: string): readonly Found[] => {
    if (question.startsWith('port/')) {
      ports ??= Map.groupBy(
        [...all()].flatMap(holder => holder.nodes.map(node => foundIn(holder, node))),
        ({ port }) => `port/${port}`
      )
      return ports.get(question) ?? []
    }
    if (!question.includes('/')) return of(question)
    hosts ??= Map.groupBy(
      [...names].flatMap(host => keysOfName(host).map(key => [key, host] as const)),
      ([key]) => key
    )
    return hosts.get(question)?.flatMap(([, host]) => of(host)) ?? []
  }
  return ({ ips }) => ({ find, past: ips.flatMap(of).filter(({ connects }) => connects) })
}

/** All facts about how requests may reach a pod. */
export interface Behind extends Answers {
  /** The Services in whose EndpointSlices the pod is, or was since its drain began. Only their names if they cannot be read. */
  readonly services: readonly (Pick<ServiceFact, 'namespace' | 'name'> & Partial<ServiceFact>)[]
  /** Services of type ExternalName whose target has this key (`keysOfName`). */
  readonly aliasesTo: (key: string) => readonly ServiceFact[]
  /** Addresses of the pod that only a slice of its namespace shows. A slice may be wrong, so they are never denied. */
  readonly elsewhere: readonly { readonly slice: string; readonly address: string }[]
  /** The agent may read Services, and has read all of them that the pod is in now. */
  readonly servicesKnown: boolean
  /** Whether some Service has this NodePort: at the address of a host, this port leads to that Service. */
  readonly isNodePort: (port: number | undefined) => boolean
  /** Whether some holder lists the pod's own address, or has since its drain began. */
  readonly isListed: boolean
}

const OWN_WAY = 'give such pods a sleep instead of the hook: no barrier is in this way (docs/ways.md)'
const ENDPOINTS =
  'list the addresses of pods (`resolveGranularity: endpoint` of an ApisixRoute or a BackendTrafficPolicy)'

/**
 * Places that may send requests to a pod without listing it. The address of a Service of the pod counts, as does the pod's host with a port
 * that leads to the pod. A domain name counts if it belongs to a Service of the pod. The names `web`, `web.shop`, `web.shop.svc` and
 * `pod.web.shop.svc` (under any domain) belong to Service `web` of namespace `shop`. Any other name belongs to a Service only through an
 * ExternalName or a load balancer.
 */
export function hiddenPlaces(
  world: Pick<World, 'ownersOf' | 'portsOf'>,
  pod: PodFact,
  behind: Behind
): readonly HiddenPlace[] {
  const places: HiddenPlace[] = []
  const add = ({ holder, node, connects }: Found, what: string) =>
    places.push({ holder, node, change: connects ? OWN_WAY : ENDPOINTS, why: `${node} is ${what}` })
  const at = (question: string, what: string, fits: (found: Found) => boolean = () => true): void => {
    for (const found of behind.find(question)) if (fits(found)) add(found, what)
  }
  /** An address that Kubernetes itself gives to another pod is not this one's, whatever a slice says. */
  const isOfNoPod = (host: string) => world.ownersOf(host).every(({ hostNetwork }) => hostNetwork)
  for (const { namespace, name, clusterIps = [], external = [], nodePorts = [] } of behind.services) {
    const service = `Service ${namespace}/${name}`
    for (const ip of clusterIps) at(ip, `the ClusterIP of ${service}`)
    for (const host of external) if (!isName(host)) at(host, `an outer address of ${service}`)
    for (const port of nodePorts)
      at(`port/${port}`, `a NodePort of ${service}`, ({ host }) => isOfNoPod(host))
  }
  for (const { slice, address } of behind.elsewhere)
    if (isOfNoPod(address))
      at(address, `an address of the pod by EndpointSlice ${pod.namespace}/${slice} only`)
  for (const [key, { namespace, name }] of namesOf(behind)) at(key, `a name of Service ${namespace}/${name}`)
  const ports = portsOnHost(pod, world.portsOf(pod))
  for (const found of behind.past)
    if (!pod.hostNetwork || found.port === undefined || ports.includes(found.port)) add(found, 'its address')
  const { hostIp, hostPorts = [] } = pod
  if (!pod.hostNetwork && hostIp !== undefined && hostPorts.length > 0)
    at(hostIp, `the hostPort of the pod`, ({ port }) => port !== undefined && hostPorts.includes(port))
  // Ports in a spec are informational: a pod may listen at a port that it does not declare.
  if (pod.hostNetwork)
    for (const ip of pod.ips)
      at(
        ip,
        'at its host’s address, and no pod declares this port',
        found => isFreePort(world, found) && !behind.isNodePort(found.port)
      )
  if (pod.hostNetwork && ports.length > MOST_PORTS)
    places.push({
      holder: `${pod.namespace}/${pod.name}`,
      why: `more than ${MOST_PORTS} ports lead to it at its host’s address, and gateways deny no more`,
      change: 'declare only the ports that serve, or leave the network of the host'
    })
  if (!behind.servicesKnown && behind.services.length > 0 && !behind.isListed)
    places.push({
      holder: 'upstreams',
      isPassing: true,
      why: 'Services cannot be read, so an address of one cannot be told',
      change: 'let the agent list and watch services (rbac)'
    })
  return places
}

/** Grouped once for each slice, because every pod of a large slice is looked up. */
const endpointsOf = new WeakMap<EndpointFact, Map<string | undefined, EndpointFact['endpoints'][number][]>>()

/** See `Behind.elsewhere`. A pod whose own addresses are not known has none. */
export function elsewhere({ uid, ips }: PodFact, slices: readonly EndpointFact[]): Behind['elsewhere'] {
  if (ips.length === 0) return []
  return slices.flatMap(slice => {
    const known = endpointsOf.get(slice) ?? Map.groupBy(slice.endpoints, ({ podUid }) => podUid)
    endpointsOf.set(slice, known)
    const mine = (known.get(uid) ?? []).filter(({ address }) => !ips.includes(address))
    return mine.map(({ address }) => ({ slice: slice.name, address }))
  })
}

/** The keys of names that mean the pod's Services, or aliases of them. */
function namesOf({
  services,
  aliasesTo
}: Behind): ReadonlyMap<string, Pick<ServiceFact, 'namespace' | 'name'>> {
  const meant = new Map<string, Pick<ServiceFact, 'namespace' | 'name'>>()
  // A Set also iterates over members that are added during the iteration.
  const known = new Set(services)
  for (const service of known)
    for (const key of keysOfService(service)) {
      if (meant.has(key)) continue
      meant.set(key, service)
      for (const alias of aliasesTo(key)) known.add(alias)
    }
  return meant
}

const isName = (host: string): boolean => !/^[\d.]+$|:/.test(host)

const isFreePort = (world: Pick<World, 'ownersOf' | 'portsOf'>, { host, port }: Found): boolean =>
  port === undefined ||
  world
    .ownersOf(host)
    .every(owner => !owner.containerPorts.includes(port) && !world.portsOf(owner).includes(port))
