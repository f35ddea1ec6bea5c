import type { Millis } from '../drain/facts.ts'
import type { Moments } from './snapshot.ts'

/** The API server writes whole seconds: the deletion was committed within one second after the time it states. */
const SECOND_MS = 1000

/**
 * When Kubernetes decided, as late as it can have been: within the second that it states, and not after we saw it. A pod's
 * watch event follows its deletion within a millisecond or so, so this is nearer to the truth than the second's begin.
 */
export function latestDecision({ decidedAt, seenAt }: Pick<Moments, 'decidedAt' | 'seenAt'>): Millis {
  return decidedAt === null ? seenAt : Math.max(decidedAt, Math.min(seenAt, decidedAt + SECOND_MS - 1))
}

/**
 * Sync lag in ms: from Kubernetes deciding until every gateway had confirmed. `null` where the gateways were not seen to.
 * At least this much, and by less than a second more if the agent was late to see it.
 */
export function lagOf(moments: Pick<Moments, 'decidedAt' | 'seenAt' | 'confirmedAt'>): number | null {
  return moments.confirmedAt === null ? null : Math.max(0, moments.confirmedAt - latestDecision(moments))
}
