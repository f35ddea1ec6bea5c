import { nodeKey, type Millis, type NodeKey, type PodFact } from '../rules/drain/facts.ts'
import type { Holder } from '../rules/plan/holder.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import type { ServiceName } from '../kubernetes/facts/slice-store.ts'

/** A pod that started within this time, in ms, may be about to be listed by the owner of a holder. */
const RECENT_MS = 120_000

type Known = Pick<Cluster, 'pods' | 'slices'>

/** The Service whose endpoints a holder lists, and the one port of its nodes. */
export interface Followed {
  readonly service: ServiceName
  readonly port: number | undefined
}

/**
 * The Service that a holder is known to follow: each of its nodes that is a pod belongs to it. A pod that ends may have left its
 * slices, and then proves nothing. `unknown`: no node is a pod of a Service. `several`: it follows no single Service.
 */
export function followedService({ pods, slices }: Known, holder: Holder): Followed | 'unknown' | 'several' {
  const listed = holder.nodes.flatMap(node => pods.byIp(node.host))
  const telling = listed.filter(pod => pod.deletionAt === undefined || slices.servicesOf(pod).length > 0)
  const [first] = telling
  if (!first) return 'unknown'
  const ports = new Set(holder.nodes.map(node => node.port))
  const [service, ...others] = slices.servicesOf(first)
  if (!service || others.length > 0 || ports.size !== 1 || listed.some(({ hostNetwork }) => hostNetwork))
    return 'several'
  const belongs = (pod: PodFact) =>
    pod.namespace === service.namespace && slices.servicesOf(pod).some(other => other.name === service.name)
  return telling.every(belongs) ? { service, port: holder.nodes[0]?.port } : 'several'
}

interface Expecting {
  readonly now: Millis
  /** Nodes that are known to be missing. They are expected at any age. */
  readonly late?: ReadonlySet<NodeKey>
}

/**
 * Nodes that a holder should list according to Kubernetes, but does not. They are only displayed, never written: several holders may
 * share a Service, each with some of its pods (docs/decisions/0024).
 *
 * Nothing is expected unless every ready endpoint that the holder does not list is younger than RECENT_MS. A holder that lists a part
 * of a Service on purpose (a subset, a canary) lacks older ones too.
 */
export function missingFrom(
  { pods, slices }: Known,
  holder: Holder,
  { service, port }: Followed,
  { now, late = new Set() }: Expecting
): readonly NodeKey[] {
  const has = new Set(holder.nodes.map(node => node.host))
  const missing = slices
    .serving(service.namespace, service.name)
    .filter(endpoint => endpoint.ready && !endpoint.terminating && !has.has(endpoint.address))
    // A slice can be many seconds later than the deletion. A pod that ends is not expected, and proves nothing about the others.
    .filter(({ podUid }) => podUid === undefined || pods.get(podUid)?.deletionAt === undefined)
    .map(({ address, podUid }) => ({ node: nodeKey(address, port), podUid }))
  const isRecent = ({ podUid }: (typeof missing)[number]) => {
    const pod = podUid === undefined ? undefined : pods.get(podUid)
    return pod?.startedAt !== undefined && pod.deletionAt === undefined && now - pod.startedAt < RECENT_MS
  }
  return missing.every(one => late.has(one.node) || isRecent(one)) ? missing.map(({ node }) => node) : []
}

/** The same for a holder of which only the nodes are known. */
export function expectedNodes(cluster: Known, holder: Holder, now: Millis): readonly NodeKey[] {
  const followed = followedService(cluster, holder)
  if (typeof followed === 'string') return []
  return missingFrom(cluster, holder, followed, { now })
}
