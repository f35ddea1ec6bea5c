import { newestRevision } from '../confirm/gateway-state.ts'
import type { Drain } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import { areLive } from '../watch/parts.ts'
import type { Sources } from './sources.ts'

/** Listings that new drains ask for are this far apart, in ms: pods that end together share one. */
const APART_MS = 500
/** What may be another node is looked for no sooner than after so many times as long as the listing before took. */
const TIMES_AS_LONG = 4

/** Decides when the holders are listed beside their usual rhythm. */
export interface Sweeper {
  /** Begins a listing where one is due. Returns when to ask again; `undefined` where nothing is being drained. */
  sweep(drains: Iterable<Drain>, now: Millis): Millis | undefined
}

/**
 * A new drain needs holders that were listed after it began; a running one is guarded, because a writer may put the node
 * back, every `guardEveryMs`. However many drains there are, they share one listing. Beside that
 * - once when the pods are known: of those that are up by then no earlier listing can tell whose address it shows
 *   (`replacements`);
 * - when a worker has applied something new and a drain waits for another node: that may be it.
 */
export function createSweeper(
  { inventory, cluster, barrier }: Pick<Sources, 'inventory' | 'cluster' | 'barrier'>,
  guardEveryMs: number
): Sweeper {
  let sweptAt: Millis | undefined
  let dueAt: Millis | undefined
  let isAfterPods = false
  let appliedBefore = 0
  let listing: { readonly at: Millis; isOver: boolean; tookMs?: number } | undefined

  /** Up to where any worker is known to be. */
  const applied = () =>
    Math.max(0, ...cluster.gateways().map(({ id }) => newestRevision(barrier?.state(id)?.told)))
  const begin = (at: Millis) => {
    appliedBefore = applied()
    const begun: typeof listing = { at, isOver: false }
    listing = begun
    void inventory.refresh().then(() => (begun.isOver = true))
  }
  /** From when on another listing is no burden; never while one is under way. */
  const restedAt = (): Millis =>
    listing?.tookMs === undefined ? Infinity : listing.at + Math.max(APART_MS, listing.tookMs * TIMES_AS_LONG)

  return {
    sweep(drains, now) {
      // A round follows every listing.
      if (listing?.isOver) listing.tookMs ??= now - listing.at
      if (!isAfterPods && areLive(cluster.parts(), ['pods'])) {
        isAfterPods = true
        begin(now)
      }
      const active = [...drains].filter(drain => drain.phase !== 'undone')
      if (active.length === 0) return (dueAt = undefined)
      const listedAt = Math.max(inventory.readAt() ?? 0, sweptAt ?? 0)
      const isNew = active.some(drain => drain.since > listedAt)
      // One listing after a pod is gone shows whether somebody has put it back last; then its ghost can wait for the usual rhythm.
      const isSettled = (drain: Drain) => drain.phase === 'gone' && drain.at <= listedAt
      if (!isNew && active.every(isSettled)) return (dueAt = undefined)
      const isNews = active.some(waitsForAnother) && applied() > appliedBefore
      const guardAt = (sweptAt ?? listedAt) + guardEveryMs
      const newsAt = isNews ? restedAt() : Infinity
      const wantedAt = isNew ? (sweptAt ?? -Infinity) + APART_MS : Math.min(newsAt, guardAt)
      dueAt = Math.min(dueAt ?? Infinity, wantedAt)
      if (now < dueAt) return dueAt
      sweptAt = now
      dueAt = undefined
      begin(now)
      return now + guardEveryMs
    }
  }
}

const waitsForAnother = (drain: Drain): boolean =>
  drain.phase === 'draining' && drain.verdict.kind === 'waiting' && drain.verdict.lastEndpoint
