import type { Drains } from '../drain/drain.ts'
import { readOptions } from '../drain/annotations.ts'
import { saysThatItEnds, isOfRole, isReplacedAfterwards, roleOf } from '../drain/eligible.ts'
import {
  nodeKey,
  type EndpointFact,
  type Millis,
  type NodeKey,
  type PodFact,
  type PodUid
} from '../drain/facts.ts'
import { type Holder, type World, isEnding } from './holder.ts'

/** A port at which a Service lists a pod. It is kept after the pod has left the slices. */
export interface ServicePort {
  readonly service: string
  readonly portName: string
  readonly port: number
}

/** The nodes of the pods that take over from an ending pod, by the ending pod's port. */
export type Successors = Readonly<Record<string, readonly NodeKey[]>>

/** A pod that may take over from every pod of one group (`groupOf`). */
export interface Candidate {
  readonly uid: PodUid
  /** The pod at the time when it became a candidate. */
  readonly pod: PodFact
  /** Its position on a ring, so that different ending pods choose different candidates. */
  readonly at: number
  readonly nodes: Successors
}

/** The most ports at which Services list a pod that has successors. */
const MOST_STANDING = 64

/** The most successors of one port; the plugin's limit (docs/barrier-api.md). */
export const MOST_SUCCESSORS = 16

export const NO_SUCCESSORS: Successors = Object.freeze({})

/**
 * The ports at which slices of the pod's namespace list the pod, or listed it earlier (`before`). Those in `before` stay: Services drop an
 * ending pod one after another, and each Service limits which pods may take over. A slice's port without a number is left out.
 */
export function servicePortsOf(
  pod: Pick<PodFact, 'uid' | 'namespace'>,
  slices: Iterable<EndpointFact>,
  before: readonly ServicePort[] = []
): readonly ServicePort[] {
  const standing = new Map(before.map(one => [keyOf(one), one]))
  for (const { namespace, service, ports, endpoints } of slices) {
    if (namespace !== pod.namespace || service === '' || !endpoints.some(e => e.podUid === pod.uid)) continue
    for (const { name: portName, port } of ports)
      if (port !== undefined) standing.set(keyOf({ service, portName, port }), { service, portName, port })
  }
  return standing.size === before.length ? before : [...standing.values()]
}

const keyOf = ({ service, portName, port }: ServicePort): string => `${service} ${portName} ${port}`

/**
 * Whether each of these holders lists the pods of whole Services, whatever their labels. Only then may a pod with other labels take over: a
 * place with a subset of a Service must not get pods outside that subset.
 *
 * Discovery takes whole Services, and so does the ingress controller 2.x. The ingress controller 1.x names an upstream
 * `namespace_service_port`, and for a subset `namespace_service_subset_port` (its `ComposeUpstreamName`).
 */
export const areWhole = (holders: readonly Pick<Holder, 'discovery' | 'owner' | 'name'>[]): boolean =>
  holders.length > 0 &&
  holders.every(
    ({ discovery, owner, name = '' }) =>
      discovery !== undefined ||
      owner === 'ingress-controller-2' ||
      (owner === 'ingress-controller-1' && name.split('_').length === 3)
  )

/**
 * Whether the second pod may follow the first one at all: their role is the same, both allow it, and no subset of a Service distinguishes
 * them.
 */
export const mayFollow = (pod: PodFact, other: PodFact, isWhole: boolean): boolean =>
  isOfRole(pod, other) &&
  (isWhole || other.labelKey === pod.labelKey) &&
  readOptions(pod.annotations).successors &&
  readOptions(other.annotations).successors

/** How long the last endpoint of a place serves on, in ms after the start of its drain, for a pod that may come: one image may take a minute. */
export const LAST_ENDPOINT_MS = 60_000

/** What may come before the pod is gone. */
interface Coming {
  /** The slices of the Services that list the pod, or listed it; `undefined` if the agent does not see all slices and pods now. */
  readonly slices: readonly EndpointFact[] | undefined
  /** Whether the pod's owner may make another one. */
  readonly mayCome: (pod: PodFact) => boolean
  /** How long a place may lack pods that are Ready, in ms. */
  readonly lateMs: Millis
}

/**
 * How long the pod serves on as the last endpoint of a place, in ms. With another pod of its role this is not asked, since that one follows.
 * While Kubernetes does not say that the pod is deleted, its container may be back before anything else.
 */
export function lastEndpointHold(pod: PodFact, { slices, mayCome, lateMs }: Coming): Millis {
  if (pod.deletionAt === undefined) return Infinity
  if (slices === undefined || (!isReplacedAfterwards(pod) && mayCome(pod))) return LAST_ENDPOINT_MS
  const peers = slices.flatMap(({ endpoints }) =>
    endpoints.filter(one => one.podUid !== pod.uid && !one.terminating)
  )
  if (peers.some(({ ready }) => !ready)) return LAST_ENDPOINT_MS
  return peers.length > 0 ? Math.min(lateMs, LAST_ENDPOINT_MS) : 0
}

/** The name of the pod's group: pods of the same group have the same candidates. Empty: this pod has no successors. */
export function groupOf(pod: PodFact, standing: readonly ServicePort[], isWhole: boolean): string {
  const role = roleOf(pod)
  if (!readOptions(pod.annotations).successors || role === undefined) return ''
  if (standing.length === 0 || standing.length > MOST_STANDING) return ''
  const family = pod.ips.map(familyOf).join()
  const places = standing.map(keyOf).sort()
  return JSON.stringify([role, pod.labelKey, isWhole, family, places])
}

/**
 * The pods that may take over from this one, by their position on the ring: they may follow it, and are Ready in every Service that lists
 * (or listed) this pod, under the same port names.
 */
export function candidatesOf(
  pod: PodFact,
  standing: readonly ServicePort[],
  isWhole: boolean,
  slicesOf: (service: string) => readonly EndpointFact[],
  podOf: (uid: PodUid) => PodFact | undefined
): Candidate[] {
  const services = new Map(
    [...new Set(standing.map(({ service }) => service))].map(service => [service, readyIn(slicesOf(service))])
  )
  const ready = new Set(services.values().flatMap(pods => pods.keys()))
  return [...ready]
    .flatMap(uid => {
      const other = podOf(uid)
      if (!other || uid === pod.uid || !mayFollow(pod, other, isWhole)) return []
      const nodes = nodesIn(services, other, pod, standing)
      return Object.keys(nodes).length > 0 ? [{ uid, pod: other, at: hash(uid), nodes }] : []
    })
    .sort((a, b) => a.at - b.at)
}

/** The candidates that take over from a pod: the next ones on the ring, so that all agents choose the same ones. */
export function chosenOf(
  pod: Pick<PodFact, 'uid'>,
  candidates: readonly Candidate[],
  mayServe: (candidate: Candidate) => boolean
): readonly Candidate[] {
  const from = firstAfter(candidates, hash(pod.uid))
  const chosen: Candidate[] = []
  for (let i = 0; i < candidates.length && chosen.length < MOST_SUCCESSORS; i++) {
    const candidate = candidates[(from + i) % candidates.length] as Candidate
    if (candidate.uid !== pod.uid && mayServe(candidate)) chosen.push(candidate)
  }
  return chosen
}

/** The nodes of these candidates. */
export function nodesOfAll(chosen: readonly Candidate[]): Successors {
  const nodes: Record<string, NodeKey[]> = {}
  for (const candidate of chosen)
    for (const [port, keys] of Object.entries(candidate.nodes))
      nodes[port] = [...(nodes[port] ?? []), ...keys].slice(0, MOST_SUCCESSORS)
  return chosen.length > 0 ? nodes : NO_SUCCESSORS
}

/**
 * Whether a pod may get another pod's requests now: it is up and does not end, and no other pod has its IP. A pod at its host's IP may
 * share that IP.
 */
export function mayTakeOver(world: World, drains: Drains, pod: PodFact | undefined): boolean {
  if (!pod || !pod.ready || saysThatItEnds(pod) || isEnding(drains.get(pod.uid))) return false
  if (pod.hostNetwork) return true
  return pod.ips.every(ip =>
    world.ownersOf(ip).every(owner => owner.uid === pod.uid || owner.hostNetwork || saysThatItEnds(owner))
  )
}

/** The ports of one slice by their names: shared by all of its endpoints. */
interface Listing {
  readonly family: EndpointFact['family']
  readonly ports: ReadonlyMap<string, ReadonlySet<number>>
}
type Listings = ReadonlyMap<PodUid, readonly Listing[]>

/** For every pod that is Ready in these slices, what they list. */
function readyIn(slices: readonly EndpointFact[]): Listings {
  const pods = new Map<PodUid, Listing[]>()
  for (const { endpoints, ports, family } of slices) {
    const named = new Map<string, Set<number>>()
    for (const { name, port } of ports)
      if (port !== undefined) named.set(name, (named.get(name) ?? new Set()).add(port))
    const listing = { family, ports: named }
    for (const { podUid, ready, terminating } of endpoints) {
      if (podUid === undefined || !ready || terminating) continue
      const known = pods.get(podUid) ?? []
      if (known.length === 0) pods.set(podUid, known)
      if (known.at(-1) !== listing) known.push(listing)
    }
  }
  return pods
}

/** The nodes of `other`, by the ending pod's port that each replaces. A port without exactly one counterpart is left out. */
function nodesIn(
  services: ReadonlyMap<string, Listings>,
  other: PodFact,
  pod: PodFact,
  standing: readonly ServicePort[]
): Successors {
  if (services.values().some(ready => !ready.has(other.uid))) return NO_SUCCESSORS
  const nodes: Record<string, NodeKey[]> = {}
  for (const [port, places] of Map.groupBy(standing, one => one.port))
    for (const ip of other.ips) {
      const family = familyOf(ip)
      if (!pod.ips.some(own => familyOf(own) === family)) continue
      const found = places.map(({ service, portName }) =>
        services
          .get(service)
          ?.get(other.uid)
          ?.flatMap(listing => (listing.family === family ? [...(listing.ports.get(portName) ?? [])] : []))
      )
      const ports = new Set(found.flat())
      const [only] = ports
      if (only === undefined || ports.size > 1 || found.some(all => all?.length === 0)) continue
      nodes[port] = [...(nodes[port] ?? []), nodeKey(ip, only)]
    }
  return nodes
}

const familyOf = (ip: string): EndpointFact['family'] => (ip.includes(':') ? 'IPv6' : 'IPv4')

/** The index of the first candidate after this position, by a binary search: hundreds of pods may end at once, with thousands of them. */
function firstAfter(candidates: readonly Candidate[], at: number): number {
  let [low, high] = [0, candidates.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const candidate = candidates[middle] as Candidate
    if (candidate.at <= at) low = middle + 1
    else high = middle
  }
  return low
}

/** FNV-1a with a final mix, because the uids of one workload differ in only a few letters. */
function hash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (hash ^ (hash >>> 16)) >>> 0
}
