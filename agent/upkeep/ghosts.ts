import type { Drain, Drains } from '../rules/drain/drain.ts'
import type { Millis } from '../rules/drain/facts.ts'
import type { Inventory } from '../gateway/inventory/inventory.ts'
import { writerOf } from '../gateway/apisix/holders.ts'
import type { Log } from '../base/log.ts'
import { ghostsIn, type AddressesKnown, type Ghost } from '../rules/members/ghost-nodes.ts'
import type { Holder, HolderKey } from '../rules/plan/holder.ts'
import { isEnding } from '../rules/plan/match.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'

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
  /** The addresses of pods that ended before this agent started, as the gateways remember them; each once. */
  readonly inherited: () => Iterable<string>
  readonly log: Log
}

/** Finds nodes whose pods are gone, and reports them. Nothing is written: the owner removes them. */
export interface Ghosts {
  /** Called each round; checks the holders once for each of their listings. */
  look(now: Millis): void
  /** The ghosts by holder, as of the last listing. */
  found(): ReadonlyMap<HolderKey, readonly Ghost[]>
}

/** How many addresses of ended pods are remembered; the oldest are dropped. */
const REMEMBERED = 50_000

export function createGhosts(options: GhostsOptions): Ghosts {
  const { cluster, inventory, drains, isPodRange, hasRanges, everywhere, afterMs, inherited, log } = options
  const ended = new Map<string, Millis>()
  const free = new Map<string, Millis>()
  let told = new Set<string>()
  let ghosts: ReadonlyMap<HolderKey, readonly Ghost[]> = new Map()
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
    endedAt: host => ended.get(host),
    isPodRange,
    freeSince: host => free.get(host)
  })

  const remember = (now: Millis): void => {
    for (const { fact, at } of cluster.pods.goneSince(lookedAt)) {
      if (!fact.hostNetwork) for (const ip of fact.ips) ended.set(ip, at)
    }
    lookedAt = now
    for (const ip of inherited()) {
      ended.set(ip, now)
      readAt = undefined
    }
    for (const ip of ended.keys())
      if (ended.size > REMEMBERED || cluster.pods.byIp(ip).length > 0) ended.delete(ip)
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
  /** Logs a ghost, unless the last listing had it, and returns its name. */
  const say = (holder: Holder, { node, evidence }: Ghost): string => {
    const name = `${holder.key} ${node.key}`
    if (!told.has(name))
      log.warn({ holder: holder.key, node: node.key, evidence, writer: writerOf(holder) }, 'ghost')
    return name
  }

  return {
    look(now) {
      remember(now)
      const listing = inventory.readAt()
      if (listing === undefined || listing === readAt) return
      readAt = listing
      if (!isCurrent()) {
        free.clear()
        ghosts = new Map()
        return
      }
      const looked = [...candidates()]
      const known = knownAt(now)
      age(looked, known, now)
      const all = looked.map(holder => ({ holder, list: ghostsIn(holder, known, now, afterMs) }))
      const haunted = all.filter(({ list }) => list.length > 0)
      ghosts = new Map(haunted.map(({ holder, list }) => [holder.key, list]))
      told = new Set(haunted.flatMap(({ holder, list }) => list.map(ghost => say(holder, ghost))))
    },
    found: () => ghosts
  }
}
