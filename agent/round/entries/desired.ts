import {
  type DesiredDrain,
  type InheritedEntry,
  hasSuccessors,
  settled
} from '../../gateway/barrier/desired-entry.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../../rules/drain/facts.ts'
import { NO_SUCCESSORS, mayFollow, servicePortsOf, type ServicePort } from '../../rules/plan/successors.ts'
import { type World, deniedNodes, leftOnHost } from '../../rules/plan/holder.ts'
import type { Status, Statuses } from '../gather/drain-status.ts'
import { type Succession, createSuccession } from './succession.ts'
import { addressOf } from '../../gateway/apisix/holders.ts'
import type { Sources } from '../gather/sources.ts'
import { areLive } from '../../kubernetes/reflect/watch-status.ts'
import { desiredEntry, entryContext, type EntryRound } from './seal-decision.ts'
import { inheritedStops } from '../gather/observe.ts'

/** What the agent does with an entry. `keep`: it neither puts nor renews it, and does not remove it. */
type Fate = 'put' | 'keep' | 'drop'

/** Decides the fate of entries; see `createAddressOwnership`. */
export interface Fates {
  /** @param isHeld this agent holds a hook of the pod */
  ofDrain(drain: Drain, isHeld: boolean, now: Millis): Fate
  /** The fate of the entries that outlive their drains. */
  ofGone(): Fate
}

interface DesiredOptions {
  readonly sources: Pick<Sources, 'barrier' | 'cluster'>
  readonly world: World
  readonly statuses: Pick<Statuses, 'of'>
  readonly ownership: Fates
  /** A dry run changes nothing in a gateway. */
  readonly dryRun: boolean
  readonly foreignHoldMs: number | undefined
  readonly lingerMs: number | undefined
  readonly mayCome: (pod: PodFact) => boolean
}

/** The entries that every gateway should hold. The only owner of that state. */
export function createDesired(options: DesiredOptions) {
  const { sources, world, statuses, ownership, dryRun, foreignHoldMs, lingerMs, mayCome } = options
  const { barrier, cluster } = sources
  const succession = createSuccession(cluster, world, mayCome)
  const lingering = createLingering(succession, lingerMs)
  let desired: readonly DesiredDrain[] = []
  /** How many entries had no drain in the last round. */
  let lingered = 0
  /** When all entries last got the successors of their round, so that two agents come to name the same ones. */
  let listedAt = -Infinity

  return {
    current: () => desired,
    /** Called when a drain is over. Its entry stays for some time. */
    ended(drain: Drain, status: Status, now: Millis) {
      if (barrier) lingering.add(drain, status, now)
    },
    /** Decides the entries anew, and gives them to the barrier. `isNews`: pods, slices, holders or phases may have changed. */
    renew({ drains, held, now, isNews }: Pick<EntryRound, 'drains' | 'held' | 'now'> & { isNews: boolean }) {
      if (!barrier) return
      if (isNews) succession.renew()
      const context = entryContext({ cluster, barrier, world, drains, succession, now, held, foreignHoldMs })
      // Without slices the agent knows no successors. That is no reason to take back those of another agent.
      const knowsSuccessors = areLive(cluster.parts(), ['pods', 'endpointslices'])
      const by = (fate: Fate, entry: DesiredDrain): DesiredDrain => ({
        ...entry,
        successors: knowsSuccessors || hasSuccessors(entry) ? entry.successors : undefined,
        frozen: fate === 'keep'
      })
      const entries: DesiredDrain[] = []
      for (const drain of drains.values()) {
        const entry = desiredEntry(drain, statuses.of(drain.uid), context)
        const fate = ownership.ofDrain(drain, held.has(drain.uid), now)
        if (entry && fate !== 'drop') entries.push(by(fate, entry))
      }
      const gateways = cluster.gateways()
      // A worker would still choose the pod, or has not said that it would not. A silent gateway forgets the entry by itself.
      const isChosen = (uid: PodUid): boolean =>
        gateways.some(({ id }) => {
          const { word, problem } = barrier.reading(uid, id) ?? {}
          return problem === '' && word !== undefined && (!word.complete || word.places > 0)
        })
      const fate = ownership.ofGone()
      const adopted = fate === 'drop' ? [] : takePredecessors(sources, drains)
      for (const pod of adopted) lingering.adopt(pod, now)
      if (fate === 'drop') lingering.clear()
      const mayDiffer = isNews || adopted.length > 0
      const seen = { now: fate === 'keep' ? ('unseen' as const) : now, isChosen, isNews: mayDiffer }
      const lingerers = lingering.entries(world, drains, seen)
      const isListing = now >= listedAt + barrier.renewEveryMs
      if (isListing) listedAt = now
      const changed = mayDiffer || isListing || lingerers.length !== lingered
      lingered = lingerers.length
      for (const entry of lingerers) entries.push(by(fate, entry))
      if (!dryRun)
        for (const stop of inheritedStops(sources, now))
          if (stop.isOver && !drains.has(stop.uid)) barrier.lift(stop)
      desired = dryRun ? [] : settled(entries, isListing ? [] : desired, changed)
      barrier.desire(desired, isNews)
    }
  }
}

/** How long an entry outlives its drain, in ms: a slow upload still has the node in the list with which it began. */
export const LINGER_MS = 120_000

/** What may end the entries without drains. `now` is `unseen` while the watch of pods is down: then only another pod at an address ends one. */
interface Lingered {
  readonly now: Millis | 'unseen'
  readonly isChosen: (uid: PodUid) => boolean
  readonly isNews: boolean
}

interface Ended {
  readonly pod: PodFact
  /** For the pod's successors, which change as other pods start and end. */
  readonly status: Pick<Status, 'standing' | 'successors'>
  /** The earliest end of the entry. It lasts while a worker would choose the pod. */
  readonly until: Millis
  entry: DesiredDrain
}

/**
 * Entries without a drain. A request keeps the list of nodes from its access phase, and may connect much later (decision 0002). Without the
 * entry, the request would try pods that are gone, and in a quick rollout only such pods. A holder may also still list a gone hostNetwork
 * pod. Until the next pod on that host is up, the successors get the requests for this node.
 */
export function createLingering(succession: Pick<Succession, 'of' | 'takenFor'>, lingerMs = LINGER_MS) {
  const over = new Map<PodUid, Ended>()
  const keep = (ended: Omit<Ended, 'entry'>, nodes: readonly NodeKey[]): void => {
    const { uid } = ended.pod
    const { successors } = ended.status
    const isTaken = succession.takenFor(ended.pod)
    over.set(uid, { ...ended, entry: { uid, nodes, successors, isTaken, state: 'sealed', watch: false } })
  }
  return {
    add(
      drain: Drain,
      { ports, standing, successors }: Pick<Status, 'ports' | 'standing' | 'successors'>,
      now: Millis
    ) {
      const { phase, pod } = drain
      // The pod of an undone drain still serves.
      if (phase === 'undone') return
      keep({ pod, status: { standing, successors }, until: now + lingerMs }, deniedNodes(drain, pod, ports))
    },
    /** Adds the entry of a pod that ended before this agent started. */
    adopt({ pod, nodes, standing }: Predecessor, now: Millis) {
      keep({ pod, status: { standing, successors: NO_SUCCESSORS }, until: now + lingerMs }, nodes)
    },
    /** Drops all entries, because the agent can never know which pods have the addresses now. */
    clear: () => over.clear(),
    entries(world: World, drains: Drains, { now, isChosen, isNews }: Lingered): readonly DesiredDrain[] {
      for (const [uid, ended] of over) {
        const { pod, status, until, entry } = ended
        // Each worker knows its own configuration.
        const isDue = now !== 'unseen' && now >= until
        const isOver = isDue && !isChosen(uid)
        if (isOver) over.delete(uid)
        // A put that changes the entry resets the words, and two agents may change it by turns. So the workers are polled from now on.
        else if (isDue) ended.entry = { ...entry, watch: true }
        if (isOver || !isNews) continue
        // Once another pod has had an address, the entry never gets it back.
        const nodes = drains.has(uid) ? [] : left(world, pod, entry.nodes)
        const successors = succession.of(pod, status, drains)
        if (nodes.length === 0) over.delete(uid)
        else if (nodes.length < entry.nodes.length || successors !== entry.successors)
          ended.entry = { ...ended.entry, nodes, successors }
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
 * Pods that ended before this agent started, and whose entries it takes over: if their owner is down while agents are updated, their
 * nodes stay listed. Empty until pods and EndpointSlices are known.
 */
export function takePredecessors(
  { cluster, barrier }: Pick<Sources, 'cluster' | 'barrier'>,
  drains: Drains
): readonly Predecessor[] {
  const knowsAddresses = areLive(cluster.parts(), ['pods', 'endpointslices'])
  if (!barrier || !knowsAddresses) return []
  const ended = barrier.takeInherited().filter(({ uid }) => !drains.has(uid) && !cluster.pods.get(uid))
  const all = ended.flatMap(({ nodes }) => [...nodes.keys()].map(addressOf))
  // An entry with a port is of a pod at its host's address, and a host does not end with it.
  cluster.pods.haveEnded(all.flatMap(({ host, port }) => (port === undefined ? [host] : [])))
  return ended.flatMap(entry => predecessorOf(entry, cluster) ?? [])
}
