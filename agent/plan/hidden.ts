import type { Grade } from '../drain/drain.ts'
import type { PodFact, ServiceFact } from '../drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from './holder.ts'
import { nodesAt } from './nodes-at.ts'
import type { World } from './world.ts'

/** A place in APISIX that may lead to a pod without listing its address, or that no evidence covers. */
export interface HiddenPlace {
  readonly holder: HolderKey
  /** Absent where it is not one node. */
  readonly node?: string | undefined
  /** What stands there, why it may lead to the pod, and what would help: for answers, `doctor` and `diff`. */
  readonly why: string
  readonly change: string
  /** The best that can be shown of it. */
  readonly best: Grade
  /** What the agent does not know yet, and may learn: it counts only as long as it is so. */
  readonly isPassing?: true
}

/** What a pod is known to be behind. */
export interface Behind {
  /** The Services in whose EndpointSlices the pod is, or was since its drain began; as names where they cannot be read. */
  readonly services: readonly (Pick<ServiceFact, 'namespace' | 'name'> & Partial<ServiceFact>)[]
  /** Services of type ExternalName. */
  readonly aliases: Iterable<ServiceFact>
  /** Services may be read, and have been. */
  readonly servicesKnown: boolean
  /** Addresses of hosts: a NodePort leads from each of them to every pod of its Service. */
  readonly hosts: () => Iterable<string>
  /** All hosts in holders that are domain names. */
  readonly names: Iterable<string>
  /** Holders whose nodes APISIX finds by itself. */
  readonly discovered: Iterable<Holder>
  /** Some holder lists the pod's own address, or did since its drain began. */
  readonly isListed: boolean
}

const ENDPOINTS =
  'list the addresses of pods (`resolveGranularity: endpoint` of an ApisixRoute or a BackendTrafficPolicy)'

/**
 * Where a pod may get requests from without being listed. An address or a name counts where it belongs to the pod, to a Service
 * that the pod is in, or to its host under a port that leads to it. Other domain names are taken to lead elsewhere: a name with the labels
 * of a Service (`web`, `web.shop`, `web.shop.svc`, `pod.web.shop.svc`, under any domain) is that Service's, every other one only
 * where an ExternalName or a load balancer of such a Service has it.
 *
 * Discovery by a registry other than Kubernetes may lead to any pod. It hides the pods that nothing else lists. An entry in the deny-list
 * applies to nodes from discovery too.
 */
export function hiddenPlaces(
  world: Pick<World, 'holdersOf' | 'ownersOf' | 'portsOf'>,
  pod: PodFact,
  behind: Behind
): readonly HiddenPlace[] {
  const found: HiddenPlace[] = []
  const at = (host: string, what: string, fits: (node: HolderNode) => boolean = () => true): void => {
    for (const holder of world.holdersOf(host))
      for (const node of nodesAt(holder.nodes, host))
        if (fits(node))
          found.push({
            holder: holder.key,
            node: node.key,
            best: 'timer',
            change: ENDPOINTS,
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
  const names = namesOf(behind)
  for (const host of behind.names) {
    const service = names(host)
    if (service) at(host, `a name of Service ${service.namespace}/${service.name}`)
  }
  const { hostIp, hostPorts = [] } = pod
  if (!pod.hostNetwork && hostIp !== undefined && hostPorts.length > 0)
    at(hostIp, `the hostPort of the pod`, ({ port }) => port !== undefined && hostPorts.includes(port))
  if (pod.hostNetwork && pod.containerPorts.length === 0 && world.portsOf(pod.uid).length === 0) {
    for (const ip of pod.ips)
      at(ip, 'at its host’s address, and the pod declares no ports', node => isNobodysPort(world, node))
  }
  return [...found, ...unseen(behind)]
}

/** What cannot be seen into, for a pod that nothing lists. */
function unseen({ discovered, isListed, services, servicesKnown }: Behind): HiddenPlace[] {
  if (isListed) return []
  const places: HiddenPlace[] = []
  for (const { key, discovery } of discovered) {
    if (!discovery || discovery.type === 'kubernetes') continue
    places.push({
      holder: key,
      best: 'timer',
      why: `its nodes are found by ${discovery.type} (${discovery.service}), which may list the pod`,
      change: 'use the discovery of Kubernetes, or list the addresses of pods'
    })
    // One is reason enough, and there may be hundreds.
    break
  }
  if (!servicesKnown && services.length > 0) {
    places.push({
      holder: 'upstreams',
      best: 'timer',
      isPassing: true,
      why: 'Services cannot be read, so an address of one cannot be told',
      change: 'let the agent list and watch services (rbac)'
    })
  }
  return places
}

/** Which Service of the pod a domain name stands for. */
function namesOf({
  services,
  aliases
}: Behind): (host: string) => { namespace: string; name: string } | undefined {
  const known = [...services]
  // Looked through again and again, and an iterator ends.
  const others = [...aliases]
  const find = (host: string) => {
    const labels = host.toLowerCase().replace(/\.$/, '').split('.')
    return known.find(
      service =>
        isNameOf(service, labels) ||
        isNameOf(service, labels.slice(1), 3) ||
        service.external?.includes(host) === true
    )
  }
  for (let more = true; more;) {
    more = false
    for (const alias of others) {
      if (alias.externalName === undefined || known.includes(alias) || !find(alias.externalName)) continue
      known.push(alias)
      more = true
    }
  }
  return find
}

/** `web`, `web.shop`, `web.shop.svc` and `web.shop.svc.any.domain`. @param least so many labels must be there */
function isNameOf(
  { namespace, name }: Pick<ServiceFact, 'namespace' | 'name'>,
  [service, space, svc]: readonly string[],
  least = 1
): boolean {
  if (service !== name || (space === undefined ? least > 1 : space !== namespace)) return false
  return svc === undefined ? least < 3 : svc === 'svc'
}

const isNobodysPort = (world: Pick<World, 'ownersOf' | 'portsOf'>, { host, port }: HolderNode): boolean =>
  port === undefined ||
  world
    .ownersOf(host)
    .every(owner => !owner.containerPorts.includes(port) && !world.portsOf(owner.uid).includes(port))

/** A stream route's nodes are chosen by the stream subsystem: its workers have no deny-list, and count nothing. */
export const streamed = (holder: Holder, node: string): HiddenPlace => ({
  holder: holder.key,
  node,
  best: 'accepted',
  why: `${node} is proxied as L4 (TCP, UDP), which the barrier does not cover`,
  change: 'none yet: give such pods a sleep for the connections that they have'
})
