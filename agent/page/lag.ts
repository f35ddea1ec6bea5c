import type { Millis } from '../drain/facts.ts'
import type { Moments } from './snapshot.ts'

/** The API server writes whole seconds: the deletion was committed within one second after the time it states. */
const SECOND_MS = 1000

/**
 * The latest time at which Kubernetes can have decided: within the second that it states, and not after the agent saw it. A
 * pod's watch event follows its deletion within about a millisecond, so this is nearer to the truth than the second's start.
 */
export function latestDecision({ decidedAt, seenAt }: Pick<Moments, 'decidedAt' | 'seenAt'>): Millis {
  return decidedAt === null ? seenAt : Math.max(decidedAt, Math.min(seenAt, decidedAt + SECOND_MS - 1))
}

/**
 * Sync lag in ms: from Kubernetes deciding until every gateway confirmed; `null` if they were not seen to confirm. A lower
 * bound: the true lag is less than a second longer, if the agent saw the deletion late.
 */
export function lagOf(moments: Pick<Moments, 'decidedAt' | 'seenAt' | 'confirmedAt'>): number | null {
  return moments.confirmedAt === null ? null : Math.max(0, moments.confirmedAt - latestDecision(moments))
}
