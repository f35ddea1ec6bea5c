import type { Drain } from '../rules/drain/drain.ts'
import type { Millis } from '../rules/drain/facts.ts'
import type { Sources } from './gather/sources.ts'

/** Minimum gap between listings for new drains, in ms: pods that end together share one listing. */
const APART_MS = 500

/** Decides when the holders are listed, in addition to the usual interval. */
interface Relister {
  /** Starts a listing if one is due. Returns when to ask again; `undefined` if no drain needs a listing. */
  relist(drains: Iterable<Drain>, now: Millis): Millis | undefined
}

/**
 * A new drain needs a listing of the holders that is newer than the drain. Later, the holders are listed every `guardEveryMs`, because a
 * writer may put the node back. All drains share one listing.
 */
export function createRelister({ inventory }: Pick<Sources, 'inventory'>, guardEveryMs: number): Relister {
  let relistedAt: Millis | undefined
  let dueAt: Millis | undefined

  return {
    relist(drains, now) {
      const active = [...drains].filter(drain => drain.phase !== 'undone')
      if (active.length === 0) return (dueAt = undefined)
      const listedAt = Math.max(inventory.readAt() ?? 0, relistedAt ?? 0)
      const isNew = active.some(drain => drain.since > listedAt)
      // One listing after a pod is gone shows whether a writer has put its node back. A ghost that appears later can wait for the usual
      // interval.
      const isSettled = (drain: Drain) => drain.phase === 'gone' && drain.at <= listedAt
      if (!isNew && active.every(isSettled)) return (dueAt = undefined)
      const guardAt = (relistedAt ?? listedAt) + guardEveryMs
      const wantedAt = isNew ? (relistedAt ?? -Infinity) + APART_MS : guardAt
      dueAt = Math.min(dueAt ?? Infinity, wantedAt)
      if (now < dueAt) return dueAt
      relistedAt = now
      dueAt = undefined
      void inventory.refresh()
      return now + guardEveryMs
    }
  }
}
