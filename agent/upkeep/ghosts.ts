import type { Drain, Drains } from '../rules/drain/drain.ts'
import type { Millis, NodeKey, PodFact } from '../rules/drain/facts.ts'
import type { Inventory } from '../gateway/inventory/inventory.ts'
import { targetOf } from '../gateway/write/object-queue.ts'
import { writerOf } from '../gateway/apisix/owner.ts'
import type { Target } from '../gateway/write/removal.ts'
import { nodeFor, type Wish } from '../gateway/write/wish.ts'
import type { Log } from '../base/log.ts'
import { ghostsIn, repairOf, type AddressesKnown, type Ghost } from '../rules/members/ghost-nodes.ts'
import type { Holder, HolderKey } from '../rules/plan/holder.ts'
import { isEnding } from '../rules/plan/match.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import { isFree, type Asking } from './asking.ts'
import type { Swaps } from './swaps.ts'

interface GhostsOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'slices' | 'parts'>
  readonly inventory: Pick<Inventory, 'holders' | 'byHost' | 'readAt'>
  readonly drains: () => Drains
  readonly isPodRange: (host: string) => boolean
  /** Whether to search for ghosts beyond the addresses of pods that were seen to end. */
  readonly hasRanges: boolean
  /** Whether pods of all namespaces are watched. Otherwise an address may belong to a pod that is not watched. */
  readonly everywhere: boolean
  readonly afterMs: number
  /** Whether repair is on, and this agent is the one that does it. */
  readonly mayRepair: () => boolean
  readonly asking: Pick<Asking, 'ownersOf'>
  /** The pods that take over from a node in the gateways. */
  readonly successors: (node: NodeKey) => readonly NodeKey[]
  readonly swaps: Swaps
  readonly log: Log
}

/** Finds nodes whose pods are gone, reports them, and removes or replaces them if that is configured. */
export interface Ghosts {
  /** Called each round; checks the holders once for each of their listings. */
  look(now: Millis): void
  /** The ghosts by holder, as of the last listing. */
  found(): ReadonlyMap<HolderKey, readonly Ghost[]>
  /** The objects to repair, once per listing: if an owner puts a ghost back, the agent writes at most once per listing. */
  targets(now: Millis): readonly Target[]
  /** Asks which pods have the addresses of ghosts in this object, because a silent watch does not show a new pod. */
  prepare(target: Target, now: Millis): Promise<void>
  /** The changes that the answers allow in the object, which was read after the answers. */
  wishes(target: Target, found: readonly Holder[], now: Millis): readonly Wish[]
}

/** How many addresses of ended pods are remembered; the oldest are dropped. */
const REMEMBERED = 50_000
/** The most addresses to ask about for one write. The others wait for the next listing. */
const ASKED = 16

export function createGhosts(options: GhostsOptions): Ghosts {
  const { cluster, inventory, drains, isPodRange, hasRanges, everywhere, afterMs, mayRepair, asking, log } =
    options
  const { successors, swaps } = options
  const ended = new Map<string, { readonly at: Millis; readonly pod: PodFact }>()
  const free = new Map<string, Millis>()
  const told = new Set<string>()
  /** By object: the hosts that had no pod when Kubernetes was asked, right before the object was read. */
  const freeHosts = new Map<string, ReadonlySet<string>>()
  let ghosts: ReadonlyMap<HolderKey, readonly Ghost[]> = new Map()
  let due: readonly Target[] = []
  let lookedAt: Millis = 0
  let readAt: Millis | undefined

  /** Whether the knowledge of Kubernetes is current. If it may be old, no node counts as a ghost. */
  const isCurrent = () =>
    everywhere && cluster.parts().every(({ name, state }) => name === 'services' || state === 'live')

  /** Whether the drain still uses its node: the owner gets `afterMs` to remove the node of a drained pod. */
  const isInUse = (drain: Drain, now: Millis) =>
    isEnding(drain) && !(drain.phase === 'gone' && now >= drain.at + afterMs)

  const knownAt = (now: Millis): AddressesKnown => ({
    isTaken: host =>
      cluster.pods.byIp(host).length > 0 ||
      [...drains().values()].some(drain => isInUse(drain, now) && drain.pod.ips.includes(host)) ||
      (!ended.has(host) && cluster.slices.lists(host)),
    endedAt: host => ended.get(host)?.at,
    isPodRange,
    freeSince: host => free.get(host)
  })

  const remember = (now: Millis): void => {
    for (const { fact, at } of cluster.pods.goneSince(lookedAt)) {
      if (!fact.hostNetwork) for (const ip of fact.ips) ended.set(ip, { at, pod: fact })
    }
    lookedAt = now
    for (const ip of ended.keys()) if (cluster.pods.byIp(ip).length > 0) ended.delete(ip)
    for (const ip of ended.keys()) {
      if (ended.size <= REMEMBERED) break
      ended.delete(ip)
    }
  }
  const candidates = (): Iterable<Holder> => {
    if (hasRanges) return inventory.holders().values()
    const holders = [...ended.keys()].flatMap(ip => inventory.byHost(ip))
    return new Map(holders.map(holder => [holder.key, holder])).values()
  }
  /** Records when each listed address lost its last pod. */
  const age = (holders: Iterable<Holder>, known: AddressesKnown, now: Millis): void => {
    const listed = new Set<string>()
    for (const { nodes } of holders)
      for (const { host } of nodes) if (isPodRange(host) && !known.isTaken(host)) listed.add(host)
    for (const host of free.keys()) if (!listed.has(host)) free.delete(host)
    for (const host of listed) if (!free.has(host)) free.set(host, now)
  }
  const say = (holder: Holder, { node, evidence }: Ghost): void => {
    const name = `${holder.key} ${node.key}`
    if (told.has(name)) return
    told.add(name)
    log.warn({ holder: holder.key, node: node.key, evidence, writer: writerOf(holder) }, 'ghost')
  }

  const seenToEnd = (ghosts: readonly Ghost[]) =>
    ghosts.flatMap(({ node }) => {
      const pod = ended.get(node.host)?.pod
      return pod ? [{ node, pod }] : []
    })

  const named = (holders: readonly Holder[], now: Millis) =>
    mayRepair() && isCurrent()
      ? holders.map(holder => ({ holder, list: ghostsIn(holder, knownAt(now), now, afterMs) }))
      : []

  return {
    look(now) {
      remember(now)
      const listing = inventory.readAt()
      if (listing === undefined || listing === readAt) return
      readAt = listing
      if (!isCurrent()) {
        free.clear()
        ghosts = new Map()
        due = []
        return
      }
      const looked = [...candidates()]
      const known = knownAt(now)
      age(looked, known, now)
      const all = looked.map(holder => ({ holder, list: ghostsIn(holder, known, now, afterMs) }))
      const haunted = all.filter(({ list }) => list.length > 0)
      for (const { holder, list } of haunted) for (const ghost of list) say(holder, ghost)
      ghosts = new Map(haunted.map(({ holder, list }) => [holder.key, list]))
      const names = new Set(
        haunted.flatMap(({ holder, list }) => list.map(({ node }) => `${holder.key} ${node.key}`))
      )
      for (const name of told) if (!names.has(name)) told.delete(name)
      due = mayRepair()
        ? haunted
            .filter(({ holder, list }) => repairOf(holder, list, successors).remove.length > 0)
            .map(({ holder }) => targetOf({ holder }))
        : []
    },
    found: () => ghosts,
    targets(at) {
      const now = due
      due = []
      return mayRepair() ? [...now, ...swaps.targets(at)] : now
    },
    async prepare(target, now) {
      const holders = [...ghosts.keys()]
        .flatMap(key => inventory.holders().get(key) ?? [])
        .filter(holder => isAt(holder, target))
      const hosts = named(holders, now).flatMap(({ list }) => list.map(({ node }) => node.host))
      freeHosts.delete(nameOf(target))
      if (hosts.length === 0) return
      const asked = await Promise.all(
        [...new Set(hosts)].slice(0, ASKED).map(async host => ({ host, owners: await asking.ownersOf(host) }))
      )
      const free = asked.flatMap(({ host, owners }) => (owners && isFree(owners) ? [host] : []))
      freeHosts.set(nameOf(target), new Set(free))
    },
    wishes(target, found, now) {
      const free = freeHosts.get(nameOf(target)) ?? new Set<string>()
      const undone = mayRepair() ? swaps.wishes(target, found) : []
      const repaired = named(found, now).flatMap(({ holder, list }): Wish[] => {
        const certain = list.filter(({ node }) => free.has(node.host))
        const { put, remove } = repairOf(holder, certain, successors)
        if (remove.length === 0) return []
        if (put.length > 0)
          swaps.add(holder.key, { target, ghosts: seenToEnd(certain), put: put.map(keyOf), at: now })
        return [{ holder: holder.key, put: put.map(node => nodeFor(node, holder)), remove }]
      })
      return [...undone, ...repaired]
    }
  }
}

const keyOf = ({ key }: { readonly key: NodeKey }): NodeKey => key
const nameOf = ({ resource, id }: Target): string => `${resource}/${id}`
const isAt = (holder: Holder, target: Target): boolean => nameOf(holder) === nameOf(target)
