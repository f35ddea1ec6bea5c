import type { Clock } from '../base/clock.ts'
import { same } from '../base/same.ts'
import type { EndpointFact, Millis, NodeKey } from '../drain/facts.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'
import { firstSeen, seenAtGateways, seenAtOwner, type Clocks } from '../members/behind.ts'
import { addressOf } from '../apisix/nodes.ts'
import type { HolderView } from '../page/holder-view.ts'
import type { Sources } from '../proof/sources.ts'
import type { Observer } from '../round/observer.ts'
import { followedService, missingFrom, type Followed } from '../upkeep/expected.ts'
import type { Sync } from '../upkeep/sync.ts'
import { gatewaysHave, servingNames } from '../proof/gateway-has.ts'

/** How far a holder is behind Kubernetes now, and how long the gateways took to follow its last change. */
export type HolderClock = Pick<HolderView, 'missing' | 'notReady' | 'behind' | 'lags'>

/**
 * The clocks of all holders. Each starts when the ready endpoints of the Service change, and stops when the Admin API lists them and
 * every gateway routes by that. It runs in every round, even without a client, because alerts rest on it.
 */
interface Behind {
  readonly observer: Observer
  of(holder: HolderKey): HolderClock
  /** `namespace/name` of the Service that it is known to follow, or `null`. */
  serviceOf(holder: HolderKey): string | null
  /** Those of the holders that are behind now, or have lags. */
  all(): Iterable<HolderClock>
}

interface BehindOptions {
  readonly sources: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'survey' | 'mode'> & {
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
/** How many holders keep the lags of their last change. */
const MOST_LAGS = 1000

const QUIET: HolderClock = { missing: [], notReady: [], behind: null, lags: [] }

interface Known {
  holder: Holder
  followed: Followed | undefined
  slices: readonly EndpointFact[]
  checkedAt: Millis
  checkUntil: Millis
  clocks: Clocks
}

export function createBehind({ sources, clock }: BehindOptions): Behind {
  const { cluster, inventory, survey, sync } = sources
  const { pods, slices } = cluster
  const known = new Map<HolderKey, Known>()
  /** Due for a comparison with Kubernetes, in order. */
  const due = new Set<HolderKey>()
  /** Holders with lags, the oldest first. */
  const measured = new Set<HolderKey>()
  let shown = new Map<HolderKey, HolderClock>()
  let lookedAt = -Infinity
  let listedAt = -Infinity
  let turn = 0

  const slicesOf = (followed: Followed | undefined) =>
    followed ? slices.of(followed.service.namespace, followed.service.name) : []

  /** Finds the holders that changed, and those whose endpoints did. */
  const notice = (gateways: readonly string[], now: Millis): void => {
    const holders = inventory.holders()
    for (const key of known.keys()) if (!holders.has(key)) forget(key)
    for (const holder of holders.values()) {
      if (holder.discovery) continue
      const one = known.get(holder.key)
      if (!one) {
        const clocks = firstSeen(holder.revision, gateways, now)
        const first = { holder, followed: undefined, slices: [], checkedAt: -Infinity, clocks }
        known.set(holder.key, { ...first, checkUntil: now + SETTLING_MS })
      } else if (one.holder === holder && same(one.slices, slicesOf(one.followed))) {
        const isSettled = now > one.checkUntil && one.clocks.nodes.size === 0
        if (isSettled || now < one.checkedAt + EVERY_MS.check) continue
      } else one.checkUntil = now + SETTLING_MS
      due.add(holder.key)
    }
    // A change that no slice shows (a Service of its own, a claim) is found in turn.
    if (turn >= known.size) turn = 0
    for (const key of known.keys().drop(turn).take(IN_TURN)) due.add(key)
    turn += IN_TURN
  }

  const forget = (key: HolderKey): void => {
    known.delete(key)
    due.delete(key)
    measured.delete(key)
  }

  const compare = (key: HolderKey, gateways: readonly string[], now: Millis): void => {
    const one = known.get(key)
    const holder = inventory.holders().get(key)
    if (!one || !holder) return
    const found = followedService(cluster, holder)
    // A holder whose pods are all gone still follows the Service that it followed with them.
    const followed = found === 'unknown' ? one.followed : found === 'several' ? undefined : found
    const current = slicesOf(followed)
    const isSame = same(one.followed?.service, followed?.service)
    const differs = new Map([
      ...missing(holder, followed, one.clocks, now),
      ...(followed && isSame ? leaving(one, holder, current, now) : [])
    ])
    const clocks = seenAtOwner(one.clocks, { revision: holder.revision, differs }, gateways, now)
    Object.assign(one, { holder, followed, slices: current, checkedAt: now, clocks } satisfies Partial<Known>)
  }

  /** Ready endpoints that it should list, each with the time from which it was ready. */
  const missing = (
    holder: Holder,
    followed: Followed | undefined,
    { nodes }: Clocks,
    now: Millis
  ): readonly (readonly [NodeKey, Millis])[] => {
    const listed = new Set(holder.nodes.map(({ key }) => key))
    const members = sync?.members(holder.key)
    const late = new Set(nodes.keys())
    const found = members
      ? [...members].filter(node => !listed.has(node))
      : followed
        ? missingFrom(cluster, holder, followed, { now, late }).filter(node => !isElsewhere(node, holder))
        : []
    return found.map(node => [node, readyAt(node) ?? now])
  }

  /** Whether another holder lists the endpoint, and none of this holder's nodes: the two then share the pods of the Service (a canary, a subset). */
  const isElsewhere = (node: NodeKey, holder: Holder): boolean =>
    inventory
      .byHost(hostOf(node))
      .some(other => !other.nodes.some(({ host }) => holder.nodes.some(own => own.host === host)))

  const readyAt = (node: NodeKey): Millis | undefined =>
    pods.byIp(hostOf(node)).flatMap(({ uid }) => pods.becameReady().get(uid) ?? [])[0]

  /**
   * Listed nodes whose endpoint was ready and is not, although the pod stays. Only if an ingress controller owns the holder: others may
   * list what is not ready on purpose. Pods that end are drains.
   */
  const leaving = (
    one: Known,
    holder: Holder,
    slicesNow: readonly EndpointFact[],
    now: Millis
  ): readonly (readonly [NodeKey, Millis])[] => {
    if (holder.owner === 'unknown') return []
    const were = readyIn(one.slices)
    const are = readyIn(slicesNow)
    const stays = (host: string) => pods.byIp(host).some(({ deletionAt }) => deletionAt === undefined)
    return holder.nodes.flatMap(({ key, host }) =>
      !are.has(host) && (were.has(host) || one.clocks.nodes.has(key)) && stays(host)
        ? [[key, now] as const]
        : []
    )
  }

  /** Each read costs the Admin API time, so reads become rarer while nothing changes. */
  const hurry = (now: Millis): void => {
    let newest = -Infinity
    for (const { clocks } of known.values()) {
      for (const since of clocks.nodes.values()) newest = Math.max(newest, since)
      for (const { since, counts } of clocks.waiting.values()) if (counts) newest = Math.max(newest, since)
    }
    if (newest === -Infinity) return
    survey?.hurry()
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
    const next = new Map<HolderKey, HolderClock>()
    for (const [key, one] of known) {
      if (one.clocks.waiting.size > 0) {
        const before = one.clocks.lags
        one.clocks = seenAtGateways(one.clocks, have(one.holder, one.clocks.wroteAt))
        if (one.clocks.lags !== before && one.clocks.lags.length > 0) remember(key)
      }
      const clock = view(one)
      if (clock !== QUIET) next.set(key, clock)
    }
    shown = next
    hurry(now)
  }

  const remember = (key: HolderKey): void => {
    measured.delete(key)
    measured.add(key)
    const [oldest] = measured
    if (measured.size <= MOST_LAGS || oldest === undefined) return
    measured.delete(oldest)
    const one = known.get(oldest)
    if (one) one.clocks = { ...one.clocks, lags: [] }
  }

  /** Keeps only what a reading shows that began after the change. An earlier reading may just be old. */
  const view = ({ holder, clocks }: Known): HolderClock => {
    const { waiting, lags } = clocks
    if (clocks.nodes.size + waiting.size + lags.length === 0) return QUIET
    const readAt = inventory.readAt() ?? -Infinity
    const nodes = [...clocks.nodes].flatMap(([node, since]) => (since < readAt ? [{ node, since }] : []))
    const gateways = [...waiting].flatMap(([gateway, { since, why, evidence }]) =>
      why === '' ? [] : [{ gateway, since, why, evidence }]
    )
    if (nodes.length + gateways.length === 0) return lags.length === 0 ? QUIET : { ...QUIET, lags }
    const isListed = ({ node }: { readonly node: NodeKey }) => holder.nodes.some(({ key }) => key === node)
    const since = Math.min(...[...nodes, ...gateways].map(one => one.since))
    const cause = nodes.length === 0 ? 'gateways' : sync?.members(holder.key) ? 'sync' : 'owner'
    return {
      missing: nodes.filter(one => !isListed(one)),
      notReady: nodes.filter(isListed),
      behind: { since, cause, gateways },
      lags
    }
  }

  return {
    observer: {
      round() {
        const now = clock.now()
        survey?.gateways(cluster.gateways())
        if (now < lookedAt + EVERY_MS.look) return
        lookedAt = now
        look(now)
      }
    },
    of: key => shown.get(key) ?? QUIET,
    serviceOf(key) {
      const service = known.get(key)?.followed?.service
      return service ? `${service.namespace}/${service.name}` : null
    },
    all: () => shown.values()
  }
}

const readyIn = (slices: readonly EndpointFact[]): ReadonlySet<string> =>
  new Set(
    slices.flatMap(({ endpoints }) => endpoints.flatMap(({ address, ready }) => (ready ? [address] : [])))
  )

const hostOf = (node: NodeKey): string => addressOf(node).host
