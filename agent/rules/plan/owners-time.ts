import type { Drains } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { Change } from './change.ts'
import type { Holder, Owner } from './holder.ts'
import type { PlanSettings } from './world.ts'
import { doubled } from '../drain/times.ts'

/** Observations of one owner: how long its last removals took, and how often it has been late since. */
export interface OwnersCourse {
  readonly tookMs: readonly Millis[]
  readonly lates: number
  readonly lateAt: Millis
}

/** Real ingress controllers write 70 to 340 ms after the deletion (measured, 1.8.4 and 2.2.0). */
const LONGEST_MS = 1000
const SHORTEST_MS = 100
/** How many removals are remembered. */
const REMEMBERED = 16
/**
 * For how long after an owner was late the agent does not wait for that owner, in ms. Doubled each time, because the owner may be gone for
 * good.
 */
const PAUSE_MS = { first: 10_000, longest: 600_000 }

export const UNKNOWN_OWNER: OwnersCourse = { tookMs: [], lates: 0, lateAt: 0 }

/** Records how long the owner took to remove a node that the agent had left to it. */
export const ownerTook = ({ tookMs }: OwnersCourse, ms: Millis): OwnersCourse => ({
  tookMs: [...tookMs, ms].slice(-REMEMBERED),
  lates: 0,
  lateAt: 0
})

/** Records that the owner was late. Its earlier times no longer show how long it takes. */
export const ownerLate = ({ lates }: OwnersCourse, now: Millis): OwnersCourse => ({
  tookMs: [],
  lates: lates + 1,
  lateAt: now
})

/** The time that an owner gets for its own removal, in ms: twice its slowest removal so far; 0 if it seems to be gone. */
export function ownersTime({ tookMs, lates, lateAt }: OwnersCourse, now: Millis): Millis {
  const pause = lates === 0 ? 0 : doubled(PAUSE_MS, lates - 1)
  if (now < lateAt + pause) return 0
  if (tookMs.length === 0) return LONGEST_MS
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, 2 * Math.max(...tookMs)))
}

/**
 * Until when a change is left to the owner of its holder, even without a barrier: one of two concurrent writes could be lost. The owner
 * gets as long as it usually takes. `undefined`: the agent writes at once.
 */
export function ownersTurn(
  { holder, nodes }: Pick<Change, 'nodes'> & { readonly holder: Pick<Holder, 'owner'> },
  drains: Drains,
  { deferMs, ownersMs }: Pick<PlanSettings, 'deferMs' | 'ownersMs'>
): Millis | undefined {
  if (!isController(holder.owner) || !ownersMs) return undefined
  const given = Math.min(deferMs, ownersMs(holder.owner))
  if (given === 0) return undefined
  return Math.min(...nodes.map(({ uid }) => (drains.get(uid)?.since ?? -Infinity) + given))
}

const isController = (owner: Owner): boolean => owner !== 'unknown'
