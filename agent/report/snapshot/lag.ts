import type { Millis } from '../../rules/drain/facts.ts'
import type { Moments } from './drain-view.ts'

/** The API server writes whole seconds: the deletion was committed within one second after the time it states. */
const SECOND_MS = 1000

/**
 * The latest time at which Kubernetes can have decided: within the second that it states, and not after the agent saw it. A pod's
 * watch event follows its deletion within about a millisecond, so this time is closer to the truth than the start of that second.
 */
export function latestDecision({ decidedAt, seenAt }: Pick<Moments, 'decidedAt' | 'seenAt'>): Millis {
  return decidedAt === null ? seenAt : Math.max(decidedAt, Math.min(seenAt, decidedAt + SECOND_MS - 1))
}

type Due = 'decidedAt' | 'seenAt'

/**
 * Sync lag in ms, from the decision of Kubernetes (see `latestDecision`). It ends when every gateway had sealed the pod (no new request from
 * then on), or was seen without it. `null` if neither is known. Requests in flight are not part of it. A lower bound: the true lag is less
 * than a second longer, if the agent saw the deletion late.
 */
export const lagOf = (moments: Pick<Moments, Due | 'sealedAt' | 'confirmedAt'>): number | null =>
  elapsed(moments, moments.sealedAt ?? moments.confirmedAt)

/** From the decision of Kubernetes until the pod's last request had ended, in ms; `null` if nothing counted them. */
export const idleLagOf = (moments: Pick<Moments, Due | 'idleAt'>): number | null =>
  elapsed(moments, moments.idleAt)

const elapsed = (moments: Pick<Moments, Due>, to: Millis | null): number | null =>
  to === null ? null : Math.max(0, to - latestDecision(moments))
