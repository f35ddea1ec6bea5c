import { drainName } from '../snapshot/drain-view.ts'
import { idleLagOf, lagOf } from '../snapshot/lag.ts'
import type { AckView, DrainLag, DrainView } from '../snapshot/drain-view.ts'

/** How many finished drains, answers, and samples of the lag are kept. */
export const LIMITS = { past: 500, unproved: 50, acks: 200, lags: 2000 } as const

/** The past, kept for display, newest first. Bounded; lost when the agent restarts. */
export interface History {
  /** Finished drains. */
  readonly past: readonly DrainView[]
  /** Those of them that were not proved: a large rollout does not push them out. */
  readonly unproved: readonly DrainView[]
  readonly acks: readonly AckView[]
  /** One for each pod. */
  readonly lags: readonly DrainLag[]
  /** See `Totals.savedMs`. */
  readonly savedMs: number
}

export const EMPTY: History = { past: [], unproved: [], acks: [], lags: [], savedMs: 0 }

/** Every gateway has confirmed a drain. Adds its lag, if the gateways were seen to confirm and one of them routed to the pod. */
export function withProof(history: History, drain: DrainView): History {
  const ms = lagOf(drain.moments)
  const at = drain.moments.sealedAt ?? drain.moments.confirmedAt
  const grade = drain.verdict?.grade ?? null
  if (ms === null || at === null || grade === null || isNotRouted(drain)) return history
  const { uid, namespace, owner } = drain
  const sample = { at, ms, idleMs: idleLagOf(drain.moments), grade, uid, namespace, owner }
  // A pod that was taken back after a proof can be proved again.
  const others = history.lags.filter(lag => lag.uid !== uid)
  return { ...history, lags: onTop(sample, others, LIMITS.lags) }
}

/** The drain is over, and no round will show it again. A pod to which no gateway routed is kept only if it had a hook. */
export function withPast(history: History, drain: DrainView): History {
  if (isNotRouted(drain) && drain.moments.ackAt === null) return history
  const others = (list: readonly DrainView[]) => list.filter(one => drainName(one) !== drainName(drain))
  return {
    ...history,
    past: onTop(drain, others(history.past), LIMITS.past),
    unproved: isUnproved(drain) ? onTop(drain, others(history.unproved), LIMITS.unproved) : history.unproved
  }
}

/** Whether no gateway ever routed to it, as with a pod of a Job. It has no sync lag. */
const isNotRouted = ({ verdict }: Pick<DrainView, 'verdict'>): boolean => verdict?.places === 0

/** Whether its deadline, or its end, came before a proof; unless it was the last endpoint, or nothing led to it. */
const isUnproved = ({ phase, verdict, unlisted }: DrainView): boolean =>
  phase !== 'undone' && verdict?.kind === 'waiting' && !verdict.lastEndpoint && !unlisted

/**
 * A hook was answered. It saved the sleep that it replaces, minus the time that it was held. That is negative if the proof took
 * longer than the sleep.
 */
export const withAck = (history: History, { at, by, ack }: AckView, sleepMs: number): History => {
  const { pod, elapsedMs, status, result, evidence, why } = ack
  const shown = { at, by, ack: { pod, elapsedMs, status, result, evidence, why } }
  // Its own answer is certain, and another agent's is text from outside.
  const others = history.acks.filter(known => known.by === by || known.ack.pod.uid !== pod.uid)
  return {
    ...history,
    acks: onTop(shown, others, LIMITS.acks),
    savedMs: history.savedMs + sleepMs - elapsedMs
  }
}

/** The gateways tell of an answer of another agent, or of this one before its restart. */
export const withHeard = (history: History, heard: AckView): History =>
  history.acks.some(({ ack }) => ack.pod.uid === heard.ack.pod.uid)
    ? history
    : {
        ...history,
        past: history.past.map(drain =>
          drain.uid === heard.ack.pod.uid && drain.moments.ackAt === null
            ? { ...drain, moments: { ...drain.moments, ackAt: heard.at } }
            : drain
        ),
        acks: [...history.acks, heard].toSorted((a, b) => b.at - a.at).slice(0, LIMITS.acks)
      }

const onTop = <T>(newest: T, list: readonly T[], limit: number): readonly T[] => [
  newest,
  ...list.slice(0, limit - 1)
]
