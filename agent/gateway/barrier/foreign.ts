import type { BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierGateway, BarrierState } from '../apisix/barrier-wire.ts'
import type { Clock } from '../../base/clock.ts'
import { nodeKey, type Millis, type PodUid } from '../../rules/drain/facts.ts'

/** An entry in a gateway that belongs to no drain of this agent. */
interface Sighting {
  readonly uid: PodUid
  /** When the entry was first seen, or when an agent of this release was last seen to renew it. */
  readonly since: Millis
  readonly endsAt: Millis
}

/** The sightings of one gateway. The key is the uid and the address. */
export type Sightings = ReadonlyMap<string, Sighting>

/** A renewal moves the end of an entry by more than this, in ms. The time of the answer moves it by less. */
const RENEWAL_MS = 1000

/**
 * The entries of a gateway that belong to no drain of this agent. Another agent of the same release may know such a drain, and
 * then it renews the entry.
 * @param by the name of this release
 * @param isWanted whether a drain of this agent has the uid
 */
export function sightings(
  entries: readonly BarrierState[],
  before: Sightings,
  {
    by,
    isWanted,
    now
  }: { readonly by: string; readonly isWanted: (uid: PodUid) => boolean; readonly now: Millis }
): Sightings {
  const strangers = entries.filter(({ uid }) => !isWanted(uid as PodUid))
  return new Map(
    strangers.map(entry => {
      const key = `${entry.uid} ${nodeKey(entry.ip, entry.port)}`
      const known = before.get(key)
      const endsAt = now + entry.ttl * 1000
      const isClaimed = known && entry.by === by && endsAt > known.endsAt + RENEWAL_MS
      const since = known && !isClaimed ? known.since : now
      return [key, { uid: entry.uid as PodUid, since, endsAt }]
    })
  )
}

/** Watches one gateway for entries that no agent of this release claims. */
export interface ForeignWatch {
  /** Takes a report of the gateway. Reads the list of entries only if the gateway holds more entries than this agent wants. */
  heard(told: Pick<BarrierGateway, 'features' | 'held'>): void
  /** How many entries no agent claims. An entry counts after half of `ttlMs`, because an agent renews its entries after a third. */
  count(): number
}

interface ForeignOptions {
  readonly api: Pick<BarrierApi, 'entries'>
  readonly clock: Clock
  readonly by: string
  readonly ttlMs: number
  readonly isWanted: (uid: PodUid) => boolean
  /** How many entries this agent wants in the gateway: one for each address. */
  readonly wanted: () => number
  /** Whether this agent may remove foreign entries now. */
  readonly mayLift: () => boolean
  readonly lift: (uids: readonly PodUid[]) => void
  /** Called when the count has changed. */
  readonly tell: () => void
}

export function createForeignWatch({
  api,
  clock,
  by,
  ttlMs,
  isWanted,
  wanted,
  mayLift,
  lift,
  tell
}: ForeignOptions): ForeignWatch {
  let seen: Sightings = new Map()
  let count = 0
  let lookAt = -Infinity

  const look = (entries: readonly BarrierState[]): void => {
    const now = clock.now()
    seen = sightings(entries, seen, { by, isWanted, now })
    const unclaimed = [...seen.values()]
    const over = unclaimed.filter(({ since }) => now - since >= ttlMs)
    if (over.length > 0 && mayLift()) lift([...new Set(over.map(({ uid }) => uid))])
    const before = count
    count = unclaimed.filter(({ since }) => now - since >= ttlMs / 2).length
    if (count !== before) tell()
  }

  return {
    heard({ features, held }) {
      // An older plugin does not report who has put an entry.
      if (!features.includes('by')) return
      if ((held?.entries ?? 0) <= wanted()) return look([])
      if (clock.now() < lookAt) return
      lookAt = clock.now() + ttlMs / 6
      // After a failure, a later report asks again.
      api.entries().then(look, () => {})
    },
    count: () => count
  }
}
