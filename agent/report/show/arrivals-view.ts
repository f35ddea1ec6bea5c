import type { Clock } from '../../base/clock.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'
import type { Observer } from '../../round/gather/memory.ts'
import type { Metrics } from '../metrics/metrics.ts'
import {
  arrivalOf,
  type Arrival,
  type ArrivalEvidence,
  type GatewayKnowledge
} from '../../rules/members/behind.ts'
import type { ArrivalView } from '../snapshot/snapshot.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { expectedNodes } from '../../upkeep/sync.ts'

/** Follows every pod that becomes Ready until every gateway routes to it. It asks no gateway: `behind-view.ts` requests the readings. */
interface Arrivals {
  readonly observer: Observer
  /** Pods on their way in, and those that have arrived or were given up, newest first. */
  views(): readonly ArrivalView[]
}

interface ArrivalsOptions {
  readonly sources: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'probe' | 'mode'>
  /** Whether some holder follows this Service. */
  readonly isFollowed: (service: ServiceName) => boolean
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'syncLag' | 'gatewayLag' | 'gatewayNames'>
}

/**
 * Intervals in ms: `look` between two passes, the others between checks of one pod. A `follower`: a holder follows its Service, but should
 * not list it yet. A `stranger`: any other pod that no holder lists. Most pods are not in APISIX, and cost almost no time.
 */
const EVERY_MS = { look: 100, follower: 500, stranger: 5000 }
/** A pod that no holder lists after this time is not in APISIX, or its owner does not write it; in ms. */
const GIVE_UP_MS = 120_000
/** How many finished arrivals are kept. */
const KEPT = 500

interface Pending {
  readonly pod: PodFact
  readonly readyAt: Millis
  readonly seen: SeenComing
  /** It is not checked before this time. */
  checkAt: Millis
  /** A holder lists it, or follows one of its Services. */
  isOurs: boolean
  view: ArrivalView
}

export function createArrivals({ sources, isFollowed, clock, metrics }: ArrivalsOptions): Arrivals {
  const { cluster, inventory } = sources
  const evidence = createArrivalEvidence(sources)
  const pending = new Map<PodUid, Pending>()
  const known = new Set<PodUid>()
  let past: readonly ArrivalView[] = []
  let lookedAt = -Infinity

  const begin = (): void => {
    const ready = cluster.pods.becameReady()
    for (const uid of known) if (!ready.has(uid)) known.delete(uid)
    for (const [uid, readyAt] of ready) {
      const pod = known.has(uid) ? undefined : cluster.pods.get(uid)
      known.add(uid)
      if (!pod || pod.hostNetwork) continue
      const nothing = { holders: [], gateways: [], at: undefined, why: '' }
      const view = viewOf(pod, readyAt, nothing)
      pending.set(uid, {
        pod,
        readyAt,
        seen: nothingSeen(),
        checkAt: readyAt,
        isOurs: false,
        view
      })
    }
  }

  /** It costs a few look-ups, so every pass calls it for every pod. If a holder begins to follow a pod, the pod is checked at once. */
  const isOurs = (pod: PodFact): boolean =>
    pod.ips.some(ip => inventory.byHost(ip).length > 0) || cluster.slices.servicesOf(pod).some(isFollowed)

  const look = (one: Pending, now: Millis): void => {
    const { pod, readyAt } = one
    const current = cluster.pods.get(pod.uid)
    const arrival = arrivalOf(evidence(pod, one.seen, now))
    one.view = viewOf(pod, readyAt, arrival)
    one.isOurs = isOurs(pod)
    one.checkAt = isShown(one.view) ? now : now + (one.isOurs ? EVERY_MS.follower : EVERY_MS.stranger)
    const hasArrived = arrival.at !== undefined
    const leaves = current === undefined || current.deletionAt !== undefined
    if (!hasArrived && !leaves && now - readyAt < GIVE_UP_MS) return
    pending.delete(pod.uid)
    // A pod that no holder lists is not in APISIX.
    if (arrival.holders.length === 0) return
    past = [one.view, ...past.slice(0, KEPT - 1)]
    if (hasArrived) measure(arrival, readyAt)
  }

  const measure = ({ at, gateways }: Arrival, readyAt: Millis): void => {
    const seconds = (to: Millis | undefined) => Math.max(0, (to ?? readyAt) - readyAt) / 1000
    metrics.syncLag.observe({ direction: 'arrival' }, seconds(at))
    for (const { name, at } of gateways) {
      const gateway = metrics.gatewayNames.labelOf(name)
      metrics.gatewayLag.observe({ direction: 'arrival', gateway }, seconds(at))
    }
  }

  return {
    observer: {
      round() {
        const now = clock.now()
        if (now < lookedAt + EVERY_MS.look) return
        lookedAt = now
        begin()
        for (const one of pending.values())
          if (now >= one.checkAt || (!one.isOurs && isOurs(one.pod))) look(one, now)
      }
    },
    views: () => [
      ...[...pending.values()]
        .map(({ view }) => view)
        .filter(isShown)
        .toReversed(),
      ...past
    ]
  }
}

/** Whether it is shown: a pod that no holder lists or should list may not belong to APISIX at all. */
const isShown = ({ holders }: ArrivalView): boolean => holders.length > 0

const viewOf = (pod: PodFact, readyAt: Millis, { at, holders, gateways, why }: Arrival): ArrivalView => ({
  uid: pod.uid,
  namespace: pod.namespace,
  pod: pod.name,
  owner: pod.owner ?? null,
  readyAt,
  routedAt: at === undefined ? null : Math.max(readyAt, at),
  why,
  holders: holders.map(({ key, at }) => ({ key, at: at ?? null })),
  gateways: gateways.map(({ name, at, evidence, why }) => ({
    name,
    at: at ?? null,
    evidence: evidence ?? null,
    why
  }))
})

/** The observations of one arriving pod so far. */
interface SeenComing {
  readonly listedAt: Map<HolderKey, Millis>
  /** Holders that follow its Service. They begin to expect the pod only while it is young, and then expect it while it arrives. */
  readonly expected: Set<HolderKey>
  /** By gateway and holder: when its Control API was first seen to list it. */
  readonly observedAt: Map<string, Millis>
}

/** The evidence about a pod that has just become known. */
const nothingSeen = (): SeenComing => ({
  listedAt: new Map(),
  expected: new Set(),
  observedAt: new Map()
})

/** Gathers the facts about an arriving pod from all parts. Updates `seen`. */
type GatherArrival = (pod: PodFact, seen: SeenComing, now: Millis) => ArrivalEvidence

function createArrivalEvidence({
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
