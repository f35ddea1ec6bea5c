import type { EndpointFact, PodFact, ServiceFact } from '../drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from './holder.ts'
import { MOST_PORTS, portsOnHost } from './match.ts'
import { nodesAt } from './nodes-at.ts'
import { keysOfName, keysOfService } from './service-names.ts'
import type { World } from './world.ts'

/** A place in APISIX that may lead to a pod without listing its address, or that no evidence covers. */
export interface HiddenPlace {
  readonly holder: HolderKey
  /** Absent if the place is not a single node. */
  readonly node?: string | undefined
  /** Why the place may lead to the pod, and a remedy (`change`): for answers and `doctor`. */
  readonly why: string
  readonly change: string
  /** The place counts only until the agent learns a fact that is missing now. Any other one rules a proof out. */
  readonly isPassing?: true
}

/** All facts about how requests may reach a pod. */
export interface Behind {
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
  /** Addresses of hosts: a NodePort leads from each of them to every pod of its Service. */
  readonly hosts: () => Iterable<string>
  /** What APISIX connects to at this host past its balancer. */
  readonly connectors: (host: string) => readonly Holder[]
  /** All hosts in holders that are domain names. */
  readonly names: Iterable<string>
  /** Holders whose nodes APISIX discovers. */
  readonly discovered: Iterable<Holder>
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
 *
 * Discovery by a registry other than Kubernetes may lead to any pod. Such a place counts for pods that no holder lists. An entry in the
 * deny-list applies to discovered nodes too.
 */
export function hiddenPlaces(
  world: Pick<World, 'holdersOf' | 'ownersOf' | 'portsOf'>,
  pod: PodFact,
  behind: Behind
): readonly HiddenPlace[] {
  const found: HiddenPlace[] = []
  const at = (
    host: string,
    what: string,
    fits: (node: HolderNode, holder: Holder) => boolean = () => true
  ): void => {
    for (const holder of [...world.holdersOf(host), ...behind.connectors(host)])
      for (const node of nodesAt(holder.nodes, host))
        if (fits(node, holder))
          found.push({
            holder: holder.key,
            node: node.key,
            change: holder.connects ? OWN_WAY : ENDPOINTS,
            why: `${node.key} is ${what}`
          })
  }
  for (const { namespace, name, clusterIps = [], external = [], nodePorts = [] } of behind.services) {
    const service = `Service ${namespace}/${name}`
    for (const ip of clusterIps) at(ip, `the ClusterIP of ${service}`)
    for (const host of external) at(host, `an outer address of ${service}`)
    if (nodePorts.length === 0) continue
    for (const host of behind.hosts())
      at(host, `a NodePort of ${service}`, ({ port }) => port !== undefined && nodePorts.includes(port))
  }
  // An address that Kubernetes itself gives to another pod is not this one's, whatever a slice says.
  for (const { slice, address } of behind.elsewhere)
    if (world.ownersOf(address).every(({ hostNetwork }) => hostNetwork))
      at(address, `an address of the pod by EndpointSlice ${pod.namespace}/${slice} only`)
  const names = namesOf(behind)
  for (const host of behind.names) {
    const service = names(host)
    if (service) at(host, `a name of Service ${service.namespace}/${service.name}`)
  }
  const ports = portsOnHost(pod, world.portsOf(pod))
  for (const ip of pod.ips)
    at(
      ip,
      'its address',
      ({ port }, { connects = false }) =>
        connects && (!pod.hostNetwork || port === undefined || ports.includes(port))
    )
  const { hostIp, hostPorts = [] } = pod
  if (!pod.hostNetwork && hostIp !== undefined && hostPorts.length > 0)
    at(hostIp, `the hostPort of the pod`, ({ port }) => port !== undefined && hostPorts.includes(port))
  // Ports in a spec are informational: a pod may listen at a port that it does not declare.
  if (pod.hostNetwork && (!behind.isListed || declaresNone(world, pod)))
    for (const ip of pod.ips)
      at(
        ip,
        'at its host’s address, and no pod declares this port',
        node => isFreePort(world, node) && !behind.isNodePort(node.port)
      )
  if (pod.hostNetwork && ports.length > MOST_PORTS)
    found.push({
      holder: `${pod.namespace}/${pod.name}`,
      why: `more than ${MOST_PORTS} ports lead to it at its host’s address, and gateways deny no more`,
      change: 'declare only the ports that serve, or leave the network of the host'
    })
  return [...found, ...unseen(behind)]
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

/** Places that the agent cannot read, for a pod that no holder lists. */
function unseen({ discovered, isListed, services, servicesKnown }: Behind): HiddenPlace[] {
  if (isListed) return []
  const places: HiddenPlace[] = []
  for (const { key, discovery } of discovered) {
    if (!discovery || discovery.type === 'kubernetes') continue
    places.push({
      holder: key,
      why: `its nodes are found by ${discovery.type} (${discovery.service}), which may list the pod`,
      change: 'use the discovery of Kubernetes, or list the addresses of pods'
    })
    // One such place is enough, and there may be hundreds.
    break
  }
  if (!servicesKnown && services.length > 0) {
    places.push({
      holder: 'upstreams',
      isPassing: true,
      why: 'Services cannot be read, so an address of one cannot be told',
      change: 'let the agent list and watch services (rbac)'
    })
  }
  return places
}

/** Returns a function that finds the pod's Service, or an alias of it, that a domain name means. */
function namesOf({
  services,
  aliasesTo
}: Behind): (host: string) => { namespace: string; name: string } | undefined {
  const meant = new Map<string, { namespace: string; name: string }>()
  // A Set also iterates over members that are added during the iteration.
  const known = new Set(services)
  for (const service of known)
    for (const key of keysOfService(service)) {
      if (meant.has(key)) continue
      meant.set(key, service)
      for (const alias of aliasesTo(key)) known.add(alias)
    }
  return host => {
    const key = keysOfName(host).find(one => meant.has(one))
    return key === undefined ? undefined : meant.get(key)
  }
}

const declaresNone = (world: Pick<World, 'portsOf'>, pod: PodFact): boolean =>
  pod.containerPorts.length === 0 && world.portsOf(pod).length === 0

const isFreePort = (world: Pick<World, 'ownersOf' | 'portsOf'>, { host, port }: HolderNode): boolean =>
  port === undefined ||
  world
    .ownersOf(host)
    .every(owner => !owner.containerPorts.includes(port) && !world.portsOf(owner).includes(port))

/**
 * The hidden place for a node that is proxied as L4. APISIX's stream subsystem chooses such nodes. It reads the deny-list and counts
 * sessions only if the gateway is configured so, which the workers' words report (docs/decisions/0067).
 */
export const streamed = (holder: Holder, node: string): HiddenPlace => ({
  holder: holder.key,
  node,
  isPassing: true,
  why: `${node} is proxied as L4 (TCP, UDP), which the barrier covers only if every gateway reports it`,
  change:
    'let the plugin cover TCP (docs/long-lived.md, L4), or give such pods a sleep for the connections that they have'
})
