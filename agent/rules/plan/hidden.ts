import type { EndpointFact, PodFact, ServiceFact } from '../drain/facts.ts'
import { type Holder, type HolderKey, type World, MOST_PORTS, portsOnHost, nameKey } from './holder.ts'

/** A place in APISIX that may lead to a pod without listing its address, or that no evidence covers. */
export interface HiddenPlace {
  readonly holder: HolderKey
  /** Why the place may lead to the pod, and a remedy (`change`). */
  readonly why: string
  readonly change: string
  /** The place counts only until the agent learns a fact that is missing now, and for a pod that nothing lists. Any other one rules a proof out. */
  readonly isPassing?: true
}

/** A node that a question has found: an address, the key of a name (`nameKey`), or a port of any host (`port/30080`). */
export interface Found {
  readonly way: string
  readonly place: HolderKey
  readonly node: string
  readonly host: string
  readonly port: number | undefined
}

/** What lists of nodes answer to a question, without the plugin. They are indexed at the first one. */
export function answersOf(lists: Iterable<Holder>): (way: string) => readonly Found[] {
  let index: ReadonlyMap<string, readonly Found[]> | undefined
  const found = ({ key: place, nodes }: Holder): readonly Found[] =>
    nodes.flatMap(({ key: node, host, port }) =>
      [isName(host) ? nameKey(host) : host, `port/${port}`].map(way => ({ way, place, node, host, port }))
    )
  return way => (index ??= Map.groupBy([...lists].flatMap(found), one => one.way)).get(way) ?? []
}

/** All facts about how requests may reach a pod. */
export interface Behind {
  /** The Services in whose EndpointSlices the pod is, or was since its drain began. Only their names if they cannot be read. */
  readonly services: readonly (Pick<ServiceFact, 'namespace' | 'name'> & Partial<ServiceFact>)[]
  /** Services of type ExternalName whose target has this key (`nameKey`). */
  readonly aliasesTo: (key: string) => readonly ServiceFact[]
  /** Addresses of the pod that only a slice of its namespace shows. A slice may be wrong, so they are never denied. */
  readonly elsewhere: readonly { readonly slice: string; readonly address: string }[]
  /** The agent may read Services, and has read all of them that the pod is in now. */
  readonly servicesKnown: boolean
  /** Whether some Service has this NodePort: at the address of a host, this port leads to that Service. */
  readonly isNodePort: (port: number | undefined) => boolean
}

const OWN_WAY = 'give such pods a sleep instead of the hook: no barrier is in this way (docs/ways.md)'
const ENDPOINTS =
  'list the addresses of pods (`resolveGranularity: endpoint` of an ApisixRoute or a BackendTrafficPolicy)'

/** What a question means: how a node that it finds leads to the pod. */
interface Way {
  readonly what: string
  readonly fits: (found: Found) => boolean
}

/** The ways to a pod, by question. The pod's own addresses are among them, for what connects past the balancer. */
export type Ways = ReadonlyMap<string, readonly Way[]>

/** The most questions of an entry, and bytes of them together (ways.lua of the plugin). */
const MOST_WAYS = 256
const MOST_BYTES = 8192

/**
 * The questions whose answers show ways to the pod without its address. The address of a Service of the pod counts, as does the pod's host
 * with a port that leads to the pod. A domain name counts if it belongs to a Service of the pod (`nameKey`), or to one through an ExternalName
 * or a load balancer.
 */
export function waysTo(world: Pick<World, 'ownersOf' | 'portsOf'>, pod: PodFact, behind: Behind): Ways {
  const ways = new Map<string, Way[]>()
  const at = (way: string, what: string, fits: Way['fits'] = () => true): void => {
    const same = ways.get(way)
    if (same) same.push({ what, fits })
    else ways.set(way, [{ what, fits }])
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
  const { hostIp, hostPorts = [] } = pod
  if (!pod.hostNetwork && hostIp !== undefined && hostPorts.length > 0)
    at(hostIp, `the hostPort of the pod`, ({ port }) => port === undefined || hostPorts.includes(port))
  const ports = portsOnHost(pod, world.portsOf(pod))
  const isOwn = (port: number | undefined) => !pod.hostNetwork || port === undefined || ports.includes(port)
  for (const ip of pod.ips) {
    at(ip, 'its address', found => isPast(found) && isOwn(found.port))
    // Ports in a spec are informational: a pod may listen at a port that it does not declare.
    if (pod.hostNetwork)
      at(
        ip,
        'at its host’s address, and no pod declares this port',
        found => isFreePort(world, found) && !behind.isNodePort(found.port)
      )
  }
  return ways
}

/** Places that rule a proof out whatever APISIX has, because not every way can be asked for. @param ports of the pod's Services */
export function unaskable(
  pod: PodFact,
  ports: readonly number[],
  ways: Ways,
  { services, servicesKnown }: Pick<Behind, 'services' | 'servicesKnown'>
): readonly HiddenPlace[] {
  const holder = `${pod.namespace}/${pod.name}`
  const onHost = pod.hostNetwork ? portsOnHost(pod, ports).length : 1
  const denied = onHost === 0 ? 'no port' : `more than ${MOST_PORTS} ports`
  const ported = {
    holder,
    why: `${denied} at its host’s address can be denied for it`,
    change: 'declare the ports that serve, and no others, or leave the network of the host'
  }
  const many = {
    holder,
    why: `more than ${MOST_WAYS} addresses and names may lead to it`,
    change: 'remove Services of type ExternalName that stand for its Services'
  }
  const unread = {
    holder: 'upstreams',
    isPassing: true,
    why: 'Services cannot be read, so an address of one cannot be told',
    change: 'let the agent list and watch services (rbac)'
  } as const
  return [
    ...(onHost === 0 || onHost > MOST_PORTS ? [ported] : []),
    ...(ways.size > MOST_WAYS || [...ways.keys()].join(' ').length > MOST_BYTES ? [many] : []),
    ...(!servicesKnown && services.length > 0 ? [unread] : [])
  ]
}

/** The places that the answers show. What another agent has asked counts too. @param more answers that were left out */
export function hiddenPlaces(ways: Ways, answers: readonly Found[], more: number): readonly HiddenPlace[] {
  const found = answers.flatMap((one): HiddenPlace[] => {
    const { way, place: holder, node } = one
    const known = ways.get(way)
    const what = known ? known.find(({ fits }) => fits(one))?.what : 'a way to it, by another agent'
    if (what === undefined) return []
    return [{ holder, why: `${node} is ${what}`, change: isPast(one) ? OWN_WAY : ENDPOINTS }]
  })
  if (more > 0)
    found.push({ holder: 'upstreams', why: `${more} more nodes may lead to it`, change: ENDPOINTS })
  return found
}

/** APISIX connects to it past its balancer. */
const isPast = ({ place }: Found): boolean => /\/(plugins\/|kafka$)/.test(place)

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
    for (const key of [service.name, `${service.name}.${service.namespace}`, ...namesIn(service)]) {
      if (meant.has(key)) continue
      meant.set(key, service)
      for (const alias of aliasesTo(key)) known.add(alias)
    }
  return meant
}

const isName = (host: string): boolean => !/^[\d.]+$|:/.test(host)
/** A gateway takes no other name, and none other resolves. */
const namesIn = ({ external = [] }: Partial<ServiceFact>): readonly string[] =>
  external.map(nameKey).filter(name => isName(name) && /^[\w.-]{1,253}$/.test(name))

const isFreePort = (world: Pick<World, 'ownersOf' | 'portsOf'>, { host, port }: Found): boolean =>
  port === undefined ||
  world
    .ownersOf(host)
    .every(owner => !owner.containerPorts.includes(port) && !world.portsOf(owner).includes(port))
