import type { DesiredDrain } from '../../gateway/barrier/desired-entry.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../../rules/drain/facts.ts'
import { deniedNodes, leftOnHost } from '../../rules/plan/match.ts'
import { NO_SUCCESSORS, mayFollow, servicePortsOf, type ServicePort } from '../../rules/plan/successors.ts'
import type { World } from '../../rules/plan/holder.ts'
import type { Memory } from '../gather/memory.ts'
import type { Succession } from './succession.ts'
import { addressOf } from '../../gateway/apisix/nodes.ts'
import type { InheritedEntry } from '../../gateway/barrier/inherited.ts'
import type { Sources } from '../gather/sources.ts'
import { areLive } from '../../kubernetes/reflect/watch-status.ts'

/** How long an entry outlives its drain, in ms: a slow upload still has the node in the list with which it began. */
export const LINGER_MS = 120_000

/**
 * Entries without a drain. A request keeps the list of nodes from its access phase, and may connect much later (decision 0002). Without the
 * entry, the request would try pods that are gone, and in a quick rollout only such pods. A holder may also still list a gone pod at its
 * host's address. Until the next pod on that host is up, the successors get the requests for this node.
 */
interface Lingering {
  add(drain: Drain, memory: Pick<Memory, 'ports' | 'standing' | 'successors'>, now: Millis): void
  /** Adds the entry of a pod that ended before this agent started. */
  adopt(predecessor: Predecessor, now: Millis): void
  /** @param now `unseen` while the watch of pods is down: only an address that another pod is known to have ends an entry */
  entries(
    world: World,
    drains: Drains,
    { now, isChosen }: { readonly now: Millis | 'unseen'; readonly isChosen: (uid: PodUid) => boolean }
  ): readonly DesiredDrain[]
  /** Drops all entries, because the agent can never know which pods have the addresses now. */
  clear(): void
}

interface Ended {
  readonly pod: PodFact
  /** For the pod's successors, which change as other pods start and end. */
  readonly memory: Pick<Memory, 'standing' | 'successors'>
  /** The earliest end of the entry. It lasts while a worker would choose the pod. */
  readonly until: Millis
  entry: DesiredDrain
}

export function createLingering(
  succession: Pick<Succession, 'of' | 'takenFor'>,
  lingerMs = LINGER_MS
): Lingering {
  const over = new Map<PodUid, Ended>()
  const keep = (ended: Omit<Ended, 'entry'>, nodes: readonly NodeKey[]): void => {
    const { uid } = ended.pod
    const { successors } = ended.memory
    const isTaken = succession.takenFor(ended.pod)
    over.set(uid, { ...ended, entry: { uid, nodes, successors, isTaken, state: 'sealed', watch: false } })
  }
  return {
    add(drain, { ports, standing, successors }, now) {
      const { phase, pod } = drain
      // The pod of an undone drain still serves.
      if (phase === 'undone') return
      keep({ pod, memory: { standing, successors }, until: now + lingerMs }, deniedNodes(drain, pod, ports))
    },
    adopt({ pod, nodes, standing }, now) {
      keep({ pod, memory: { standing, successors: NO_SUCCESSORS }, until: now + lingerMs }, nodes)
    },
    clear: () => over.clear(),
    entries(world, drains, { now, isChosen }) {
      for (const [uid, ended] of over) {
        const { pod, memory, until, entry } = ended
        // Each worker knows its own configuration.
        const isOver = now !== 'unseen' && now >= until && !isChosen(uid)
        // Once another pod has had an address, the entry never gets it back.
        const nodes = isOver || drains.has(uid) ? [] : left(world, pod, entry.nodes)
        const successors = succession.of(pod, memory, drains)
        if (nodes.length === 0) over.delete(uid)
        else if (nodes.length < entry.nodes.length || successors !== entry.successors)
          ended.entry = { ...entry, nodes, successors }
      }
      return [...over.values()].map(({ entry }) => entry)
    }
  }
}

function left(world: World, pod: PodFact, nodes: readonly NodeKey[]): readonly NodeKey[] {
  if (pod.hostNetwork) return leftOnHost(world, pod, nodes)
  return pod.ips.some(ip => world.ownersOf(ip).some(({ uid }) => uid !== pod.uid)) ? [] : nodes
}

/** A pod that ended before this agent started, reconstructed from its successors. */
interface Predecessor {
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
