import { nodeKey, type Millis, type NodeKey, type PodFact } from '../drain/facts.ts'
import type { Holder } from '../plan/holder.ts'
import type { Cluster } from '../facts/cluster.ts'

/** A pod that started within this time may be on its way into a holder by its owner's hand. */
const RECENT_MS = 120_000

/**
 * Nodes that a holder should list as far as Kubernetes can tell: for showing what is missing, never for writing. A Service can
 * stand behind several holders with some of its pods each (docs/decisions/0024).
 *
 * Only where the holder is known to follow one Service: every node of it that is a pod's belongs to that Service, and
 * every ready endpoint that it does not list is younger than RECENT_MS. A holder that lists a part of a Service on
 * purpose (a subset, a canary) has older ones missing, and nothing is expected of it. `recentMs`: where it is known to
 * follow all of a Service whatever its age.
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
  const services = slices.servicesOf(first.pod.uid)
  const [service] = services
  if (!service || services.length > 1) return []
  const belongs = (pod: PodFact) => slices.servicesOf(pod.uid).some(other => other.name === service.name)
  if (!listed.every(({ pod }) => pod.namespace === service.namespace && belongs(pod))) return []

  const has = new Set(holder.nodes.map(node => node.host))
  const missing = slices
    .serving(service.namespace, service.name)
    .filter(endpoint => endpoint.ready && !endpoint.terminating && !has.has(endpoint.address))
    // A slice can be many seconds behind the deletion: what ends is not expected, and says nothing about the rest.
    .filter(({ podUid }) => podUid === undefined || pods.get(podUid)?.deletionAt === undefined)
  const isRecent = ({ podUid }: (typeof missing)[number]) => {
    const pod = podUid === undefined ? undefined : pods.get(podUid)
    return pod?.startedAt !== undefined && pod.deletionAt === undefined && now - pod.startedAt < recentMs
  }
  return missing.every(isRecent) ? missing.map(({ address }) => nodeKey(address, first.node.port)) : []
}
