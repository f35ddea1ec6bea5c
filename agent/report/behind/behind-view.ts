import type { Clock } from '../../base/clock.ts'
import { addressRanges, same } from '../../base/read.ts'
import type { Config } from '../../config/config.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { addressOf } from '../../gateway/apisix/holders.ts'
import type { Millis, NodeKey, PodFact } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import {
  firstSeen,
  ghostsIn,
  seenAtGateways,
  seenAtOwner,
  type AddressesKnown,
  type Ghost
} from '../../rules/members/behind.ts'
import type { Sources } from '../../round/gather/sources.ts'
import { followedService, type Followed, type Sync } from '../../upkeep/sync.ts'
import {
  gatewaysHave,
  holderClock,
  differencesOf,
  servingNames,
  QUIET,
  type Compared,
  type HolderClock
} from './differences.ts'
import { serviceName } from '../../rules/members/members.ts'

interface BehindOptions {
  readonly sources: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'probe' | 'mode'> & {
    readonly sync: Pick<Sync, 'members'> | undefined
  }
  readonly clock: Clock
}

/** Intervals in ms: between passes, between checks of a holder that is behind, and the shortest between requested listings. */
const EVERY_MS = { look: 200, check: 500, listing: 2000 }
/** For how long a holder is checked again after a change, in ms: the watches of pods and slices are apart. */
const SETTLING_MS = 5000
/** How many holders one pass compares with Kubernetes; the others follow in the next passes. */
const AT_ONCE = 250
/** How many are compared in turn although nothing is known to have changed. */
const IN_TURN = 50

interface Known extends Compared {
  /** Those of its nodes that are, or were, the addresses of pods. */
  pods: ReadonlySet<NodeKey>
  checkedAt: Millis
  checkUntil: Millis
}

/**
 * The clocks of all holders. Each starts when the ready endpoints of the Service change, and stops when the Admin API lists them and
 * every gateway routes by that. The clocks run in every round, even without a client, because alerts rest on them.
 */
export function createBehind({ sources, clock }: BehindOptions) {
  const { cluster, inventory, probe, sync } = sources
  const { slices } = cluster
  const known = new Map<HolderKey, Known>()
  /** Due for a comparison with Kubernetes, in order. */
  const due = new Set<HolderKey>()
  /** Holders whose clock may move although neither they nor any slice has changed. */
  const unsettled = new Set<HolderKey>()
  const shown = new Map<HolderKey, HolderClock>()
  let seen = ''
  let lookedAt = -Infinity
  let listedAt = -Infinity
  let turn = 0

  const isPod = (host: string): boolean => cluster.pods.byIp(host).length > 0
  const isServing = ({ ready, deletionAt }: PodFact): boolean => ready && deletionAt === undefined
  const slicesOf = (followed: Followed | undefined) =>
    followed ? slices.of(followed.service.namespace, followed.service.name) : []

  /** Finds the holders that changed, or whose endpoints did. The unsettled ones also fall due at intervals, and the others in turn. */
  const notice = (gateways: readonly string[], now: Millis): void => {
    const holders = inventory.holders()
    const versions = `${inventory.version()} ${slices.version()}`
    if (versions !== seen) {
      seen = versions
      for (const key of known.keys()) if (!holders.has(key)) forget(key)
      for (const holder of holders.values()) if (!holder.discovery) noticeOne(holder, gateways, now)
    }
    for (const key of unsettled) {
      const one = known.get(key)
      if (one && now >= one.checkedAt + EVERY_MS.check) due.add(key)
    }
    // A change that no slice shows (a Service of its own, a claim) is found in turn.
    if (turn >= known.size) turn = 0
    for (const key of known.keys().drop(turn).take(IN_TURN)) due.add(key)
    turn += IN_TURN
  }

  const noticeOne = (holder: Holder, gateways: readonly string[], now: Millis): void => {
    const one = known.get(holder.key)
    if (!one) {
      const clocks = firstSeen(holder.revision, gateways, now)
      const first = {
        holder,
        followed: undefined,
        slices: [],
        pods: new Set<NodeKey>(),
        checkedAt: -Infinity,
        gainedAt: -Infinity,
        clocks
      }
      known.set(holder.key, { ...first, checkUntil: now + SETTLING_MS })
    } else if (one.holder === holder && same(one.slices, slicesOf(one.followed))) return
    else one.checkUntil = now + SETTLING_MS
    due.add(holder.key)
    unsettled.add(holder.key)
  }

  const forget = (key: HolderKey): void => {
    known.delete(key)
    due.delete(key)
    unsettled.delete(key)
    shown.delete(key)
  }

  const compare = (key: HolderKey, gateways: readonly string[], now: Millis): void => {
    const one = known.get(key)
    const holder = inventory.holders().get(key)
    if (!one || !holder) return
    const had = new Set(one.holder.nodes.map(node => node.key))
    const gained = holder.nodes.some(node => !had.has(node.key))
    if (gained) one.gainedAt = now
    const pods = new Set(
      holder.nodes.flatMap(({ key, host }) => (one.pods.has(key) || isPod(host) ? [key] : []))
    )
    const stale = holder.nodes.some(
      ({ key, host }) => pods.has(key) && !cluster.pods.byIp(host).some(isServing)
    )
    const service = followedService(cluster, holder)
    // A holder whose pods are all gone still follows the Service that it followed with them.
    const followed = service === 'unknown' ? one.followed : service === 'several' ? undefined : service
    const current = slicesOf(followed)
    const differs = differencesOf(sources, holder, { followed, slices: current }, one, now)
    const seen = { revision: holder.revision, differs, gained, stale }
    const clocks = seenAtOwner(one.clocks, seen, gateways, now)
    const found = { holder, followed, slices: current, pods, checkedAt: now, clocks }
    Object.assign(one, found satisfies Partial<Known>)
  }

  /** Each read costs the Admin API time, so reads become rarer while nothing changes. */
  const hurry = (now: Millis): void => {
    let newest = -Infinity
    for (const key of unsettled) {
      const { clocks } = known.get(key) ?? {}
      if (!clocks) continue
      for (const since of clocks.nodes.values()) newest = Math.max(newest, since)
      for (const { since } of clocks.waiting.values()) newest = Math.max(newest, since)
    }
    if (newest === -Infinity) return
    probe?.hurry()
    if (now < listedAt + Math.max(EVERY_MS.listing, (now - newest) / 10)) return
    listedAt = now
    void inventory.refresh()
  }

  const look = (now: Millis): void => {
    const serving = servingNames(cluster.gateways())
    notice(serving, now)
    const some = [...due].slice(0, AT_ONCE)
    for (const key of some) {
      due.delete(key)
      compare(key, serving, now)
    }
    const have = gatewaysHave(sources, cluster.gateways())
    for (const key of new Set([...some, ...unsettled])) {
      const one = known.get(key)
      if (one) tick(key, one, have, now)
    }
    hurry(now)
  }

  const tick = (key: HolderKey, one: Known, have: ReturnType<typeof gatewaysHave>, now: Millis): void => {
    if (one.clocks.waiting.size > 0)
      one.clocks = seenAtGateways(one.clocks, have(one.holder, one.clocks.wroteAt))
    const { owes, waiting } = one.clocks
    if (now <= one.checkUntil || owes !== undefined || waiting.size > 0) unsettled.add(key)
    else unsettled.delete(key)
    const clock = holderClock(one, inventory.readAt() ?? -Infinity, () => sync?.members(key) !== undefined)
    if (clock === QUIET) shown.delete(key)
    else shown.set(key, clock)
  }

  return {
    observer: {
      round() {
        const now = clock.now()
        if (now < lookedAt + EVERY_MS.look) return
        lookedAt = now
        look(now)
      }
    },
    of: (key: HolderKey): HolderClock => shown.get(key) ?? QUIET,
    /** `namespace/name` of the Service that it is known to follow, or `null`. */
    serviceOf(key: HolderKey): string | null {
      const service = known.get(key)?.followed?.service
      return service ? serviceName(service) : null
    },
    /** By host: the holders that should list it, and do not yet. */
    lackedBy: (): ReadonlyMap<string, readonly HolderKey[]> => {
      const lacks = [...unsettled].flatMap(key =>
        [...(known.get(key)?.clocks.nodes.keys() ?? [])].map(node => ({ host: addressOf(node).host, key }))
      )
      const byHost = Map.groupBy(lacks, ({ host }) => host)
      return new Map([...byHost].map(([host, all]) => [host, all.map(({ key }) => key)]))
    },
    /** Those of the holders that are behind now. */
    all: (): Iterable<HolderClock> => shown.values()
  }
}

interface GhostsOptions {
  readonly sources: {
    readonly cluster: Pick<Cluster, 'pods' | 'slices' | 'parts'>
    readonly inventory: Pick<Inventory, 'holders' | 'readAt'>
  }
  readonly config: Pick<Config, 'sync' | 'kubernetes' | 'ghosts'>
  readonly clock: Pick<Clock, 'now'>
}

/** Finds nodes whose pods are gone. Nothing is written: the owner removes them. */
export function createGhosts({ sources, config, clock }: GhostsOptions) {
  const { inventory } = sources
  const { pods, slices, parts } = sources.cluster
  const isPodRange = addressRanges(config.sync.podRanges)
  // Otherwise, an address may belong to a pod that is not watched.
  const isEverywhere = config.kubernetes.namespaces.length === 0
  /** Of each listed address in a pod range that no pod has: since when. */
  let free: ReadonlyMap<string, Millis> = new Map()
  let readAt: Millis | undefined

  /** Whether the knowledge of Kubernetes is current. If it may be old, no node counts as a ghost. */
  const isCurrent = () =>
    isEverywhere && parts().every(({ name, state }) => name === 'services' || state === 'live')
  const known: AddressesKnown = {
    isTaken: host => pods.byIp(host).length > 0,
    endedAt: host => pods.endedAt(host),
    freeSince: host => free.get(host)
  }
  const isFree = (host: string) => isPodRange(host) && !known.isTaken(host) && !slices.lists(host)

  return {
    observer: {
      /** Looks at the addresses once for each listing of the holders. */
      round() {
        const now = clock.now()
        if (inventory.readAt() === readAt) return
        readAt = inventory.readAt()
        const listed = new Set(
          inventory
            .holders()
            .values()
            .flatMap(({ nodes }) => nodes.map(({ host }) => host))
        )
        const hosts = isCurrent() ? [...listed].filter(isFree) : []
        free = new Map(hosts.map(host => [host, free.get(host) ?? now]))
      }
    },
    of: (holder: Holder): readonly Ghost[] =>
      isCurrent() ? ghostsIn(holder, known, clock.now(), config.ghosts.afterMs) : []
  }
}
