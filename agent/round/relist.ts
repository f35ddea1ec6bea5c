import type { Drain } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { Sources } from '../proof/sources.ts'

/** Listings that new drains ask for are this far apart, in ms: pods that end together share one. */
const APART_MS = 500

/** Decides when the holders are listed in addition to their usual rhythm. */
interface Relister {
  /** Begins a listing where one is due. Returns when to ask again; `undefined` where nothing is being drained. */
  relist(drains: Iterable<Drain>, now: Millis): Millis | undefined
}

/**
 * A new drain needs holders that were listed after it began; a running one is guarded, because a writer may put the node
 * back, every `guardEveryMs`. However many drains there are, they share one listing.
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
      // One listing after a pod is gone shows whether a writer has put it back last; then its ghost can wait for the usual rhythm.
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
