import type { Ack } from '../drain/ack.ts'
import type { Millis } from '../drain/facts.ts'
import { lagOf } from '../page/lag.ts'
import type { AckView, DrainView, LagSample } from '../page/snapshot.ts'

/** How many finished drains, answers, and samples of the lag are kept. */
export const LIMITS = { past: 500, acks: 200, lags: 2000 } as const

/** The past, kept for display, newest first. Bounded; lost when the agent restarts. */
export interface History {
  /** Finished drains. */
  readonly past: readonly DrainView[]
  readonly acks: readonly AckView[]
  readonly lags: readonly LagSample[]
  /** See `Totals.savedMs`. */
  readonly savedMs: number
}

export const EMPTY: History = { past: [], acks: [], lags: [], savedMs: 0 }

/** Every gateway has confirmed a drain: adds its lag, if the gateways were seen to confirm. */
export function withProof(history: History, drain: DrainView): History {
  const ms = lagOf(drain.moments)
  const { confirmedAt } = drain.moments
  const grade = drain.verdict?.grade ?? null
  if (ms === null || confirmedAt === null || grade === null) return history
  return { ...history, lags: onTop({ at: confirmedAt, ms, grade }, history.lags, LIMITS.lags) }
}

/** The drain is over and no round will show it again. */
export function withPast(history: History, drain: DrainView): History {
  const past = [drain, ...history.past]
  if (past.length <= LIMITS.past) return { ...history, past }
  // -1 is the last one. A large rollout must not push the few that were not proved out of the page.
  const oldestProved = past.findLastIndex(({ verdict }) => verdict?.kind === 'proven')
  return { ...history, past: past.toSpliced(oldestProved, 1) }
}

/**
 * A hook was answered. It saved the sleep that it replaces, less the time that it was held: negative if the proof took
 * longer than that sleep.
 */
export const withAck = (history: History, ack: Ack, at: Millis, sleepMs: number): History => ({
  ...history,
  acks: onTop({ at, ack }, history.acks, LIMITS.acks),
  savedMs: history.savedMs + sleepMs - ack.elapsedMs
})

const onTop = <T>(newest: T, list: readonly T[], limit: number): readonly T[] => [
  newest,
  ...list.slice(0, limit - 1)
]
