import type { Millis, PodFact } from '../../rules/drain/facts.ts'
import type { ArrivalEvidence, GatewayKnowledge } from '../../rules/members/arrivals.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { expectedNodes } from '../../upkeep/expected.ts'
import type { Sources } from '../../round/gather/sources.ts'

/** The observations of one arriving pod so far. */
export interface SeenComing {
  readonly listedAt: Map<HolderKey, Millis>
  /** Holders that follow its Service. They begin to expect the pod only while it is young, and then expect it while it arrives. */
  readonly expected: Set<HolderKey>
  /** By gateway and holder: when its Control API was first seen to list it. */
  readonly observedAt: Map<string, Millis>
}

/** The evidence about a pod that has just become known. */
export const nothingSeen = (): SeenComing => ({
  listedAt: new Map(),
  expected: new Set(),
  observedAt: new Map()
})

/** Gathers the facts about an arriving pod from all parts. Updates `seen`. */
type GatherArrival = (pod: PodFact, seen: SeenComing, now: Millis) => ArrivalEvidence

export function createArrivalEvidence({
  cluster,
  inventory,
  barrier,
  probe,
  mode
}: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'probe' | 'mode'>): GatherArrival {
  /** The holders that list the pod, and those that follow its Service and should list it. */
  const holdersOf = (pod: PodFact, { expected }: SeenComing, now: Millis): readonly Holder[] => {
    const peers = cluster.slices.servicesOf(pod).flatMap(({ namespace, name }) =>
      cluster.slices
        .serving(namespace, name)
        .filter(({ podUid }) => podUid !== pod.uid)
        .slice(0, 3)
    )
    const found = [...pod.ips, ...peers.map(({ address }) => address)].flatMap(ip => inventory.byHost(ip))
    return [...new Set(found)].filter(holder => {
      if (holder.discovery) return false
      if (nodeOf(holder, pod) !== undefined || expected.has(holder.key)) return true
      if (!expectedNodes(cluster, holder, now).some(node => isAt(node, pod))) return false
      expected.add(holder.key)
      return true
    })
  }

  const knowledgeOf = (
    pod: PodFact,
    seen: SeenComing,
    id: string,
    name: string,
    now: Millis
  ): GatewayKnowledge => {
    const state = barrier?.state(id)
    const workers = state?.problem === '' ? (state.told?.workers ?? []) : []
    return {
      name,
      toldAt: state?.lastSuccessAt,
      workers: workers
        .filter(({ exiting }) => exiting !== true)
        .map(({ revision, revisions, applied }) => ({
          revision,
          revisions,
          appliedAt: applied ? applied * 1000 - (state?.aheadMs ?? 0) : undefined
        })),
      observedAt: key => {
        const place = `${id} ${key}`
        const listed = probe?.sighting(id)?.holders.get(key) ?? []
        if (!seen.observedAt.has(place) && listed.some(node => isAt(node, pod)))
          seen.observedAt.set(place, now)
        return seen.observedAt.get(place)
      }
    }
  }

  return (pod, seen, now) => {
    // Only etcd's revisions are the same for all gateways. In standalone mode the agent counts them itself.
    const hasRevisions = mode.current().mode === 'etcd'
    return {
      holders: holdersOf(pod, seen, now).map(holder => {
        const { key } = holder
        const node = nodeOf(holder, pod)
        if (node !== undefined && !seen.listedAt.has(key)) seen.listedAt.set(key, now)
        const revision = node === undefined || !hasRevisions ? undefined : holder.revision
        return { key, listedAt: seen.listedAt.get(key), revision: revision || undefined }
      }),
      gateways: cluster
        .gateways()
        .filter(({ ready, terminating }) => ready && !terminating)
        .map(({ id, name }) => knowledgeOf(pod, seen, id, name, now))
    }
  }
}

const isAt = (node: string, pod: PodFact): boolean =>
  pod.ips.some(ip => node === ip || node.startsWith(ip.includes(':') ? `[${ip}]:` : `${ip}:`))

const nodeOf = (holder: Holder, pod: PodFact) => holder.nodes.find(({ host }) => pod.ips.includes(host))?.key
