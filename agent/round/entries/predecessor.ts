import { addressOf } from '../../gateway/apisix/nodes.ts'
import type { InheritedEntry } from '../../gateway/barrier/inherited.ts'
import type { Drains } from '../../rules/drain/drain.ts'
import type { NodeKey, PodFact } from '../../rules/drain/facts.ts'
import { mayFollow, servicePortsOf, type ServicePort } from '../../rules/plan/successors.ts'
import type { Sources } from '../gather/sources.ts'
import { areLive } from '../../kubernetes/reflect/watch-status.ts'

/** A pod that ended before this agent started, reconstructed from its successors. */
export interface Predecessor {
  readonly pod: PodFact
  readonly nodes: readonly NodeKey[]
  readonly standing: readonly ServicePort[]
}

/**
 * The pod of an inherited entry, with the role, labels and Services of its successors. `undefined` if these are not certain: no named
 * pod lives any more, or the living ones differ in role or labels. Addresses are reused, so a pod counts only if it ran before the
 * entry was put.
 */
export function predecessorOf(
  { uid, nodes, putAt }: InheritedEntry,
  { pods, slices, serverBehindMs }: Pick<Sources['cluster'], 'pods' | 'slices' | 'serverBehindMs'>
): Predecessor | undefined {
  // `startedAt` has whole seconds.
  const ranThen = ({ startedAt = Infinity }: PodFact) => startedAt + serverBehindMs() + 1000 <= putAt
  const named = [...nodes.values()].flatMap(successors =>
    Object.entries(successors).flatMap(([port, to]) => to.map(node => ({ port: Number(port), node })))
  )
  const living = named.flatMap(({ port, node }) => {
    const { host, port: itsPort } = addressOf(node)
    const pod = pods.byIp(host).find(one => !one.hostNetwork && one.deletionAt === undefined && ranThen(one))
    return pod ? [{ pod, port, itsPort }] : []
  })
  const [first] = living
  if (!first || living.some(({ pod }) => !mayFollow(first.pod, pod, false))) return undefined
  const standing = living.flatMap(({ pod, port, itsPort }) =>
    servicePortsOf(pod, slices.listing(pod))
      .filter(at => at.port === itsPort)
      .map(at => ({ ...at, port }))
  )
  const ips = [...nodes.keys()].map(node => addressOf(node).host)
  return {
    pod: { ...first.pod, uid, ips },
    nodes: [...nodes.keys()],
    standing: [...new Map(standing.map(at => [JSON.stringify(at), at])).values()]
  }
}

/**
 * Pods that ended before this agent started, and whose entries this agent takes over. The owner of their nodes may be dead while the agents
 * are updated. Empty until all pods and their Services are known.
 */
export function takePredecessors(
  { cluster, barrier }: Pick<Sources, 'cluster' | 'barrier'>,
  drains: Drains
): readonly Predecessor[] {
  const knowsAddresses = areLive(cluster.parts(), ['pods', 'endpointslices'])
  if (!barrier || !knowsAddresses) return []
  return barrier
    .takeInherited()
    .filter(({ uid }) => !drains.has(uid) && !cluster.pods.get(uid))
    .flatMap(entry => predecessorOf(entry, cluster) ?? [])
}
