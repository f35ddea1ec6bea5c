import { nodeKey, type Millis, type NodeKey, type PodFact } from '../drain/facts.ts'
import type { Holder } from '../plan/holder.ts'
import type { Cluster } from '../facts/cluster.ts'

/** The owner of a holder may be about to list a pod that started within this time, in ms. */
const RECENT_MS = 120_000

/**
 * Nodes that a holder should list according to Kubernetes: only to show missing nodes, never for writing. A Service can stand
 * behind several holders, each with some of its pods (docs/decisions/0024).
 *
 * Only if the holder is known to follow one Service: each of its nodes that is a pod belongs to that Service, and every ready
 * endpoint that it does not list is younger than `recentMs`. A holder that lists a part of a Service on purpose (a subset, a
 * canary) lacks older ones, and nothing is expected there. Pass a larger `recentMs` for a holder that is known to follow all of a
 * Service, whatever the age of its pods.
 */
export function expectedNodes(
  { pods, slices }: Pick<Cluster, 'pods' | 'slices'>,
  holder: Holder,
  now: Millis,
  recentMs = RECENT_MS
): readonly NodeKey[] {
  const listed = holder.nodes.flatMap(node => pods.byIp(node.host).map(pod => ({ node, pod })))
  const [first] = listed
  const ports = new Set(holder.nodes.map(node => node.port))
  if (!first || ports.size !== 1 || listed.some(({ pod }) => pod.hostNetwork)) return []
  const services = slices.servicesOf(first.pod)
  const [service] = services
  if (!service || services.length > 1) return []
  const belongs = (pod: PodFact) => slices.servicesOf(pod).some(other => other.name === service.name)
  if (!listed.every(({ pod }) => pod.namespace === service.namespace && belongs(pod))) return []

  const has = new Set(holder.nodes.map(node => node.host))
  const missing = slices
    .serving(service.namespace, service.name)
    .filter(endpoint => endpoint.ready && !endpoint.terminating && !has.has(endpoint.address))
    // A slice can be many seconds behind the deletion: a pod that ends is not expected, and proves nothing about the others.
    .filter(({ podUid }) => podUid === undefined || pods.get(podUid)?.deletionAt === undefined)
  const isRecent = ({ podUid }: (typeof missing)[number]) => {
    const pod = podUid === undefined ? undefined : pods.get(podUid)
    return pod?.startedAt !== undefined && pod.deletionAt === undefined && now - pod.startedAt < recentMs
  }
  return missing.every(isRecent) ? missing.map(({ address }) => nodeKey(address, first.node.port)) : []
}
