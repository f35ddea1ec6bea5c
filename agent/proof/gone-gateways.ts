import type { Millis } from '../drain/facts.ts'

/** The last results from one interface of a gateway: its barrier, or its Control API. */
export interface Heard {
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** The last attempt found that nothing listens there. */
  readonly refused: boolean
}

/**
 * How long a gateway that vanished and does not answer is assumed to serve, in ms: the longest time that a request through it can take
 * (APISIX's own time-outs are 60 s, a slow upload takes longer). As long as an entry outlives its drain.
 */
export const REQUESTS_LAST_MS = 120_000

/**
 * When a gateway that vanished, and was not seen to end, stops serving: a time in the past, or the time of the next check.
 * It has ended when the first interface that ever answered refuses connections; a refusal by one that never did (no plugin, a closed
 * port) proves nothing. A gateway that only falls silent may be frozen or cut off: it counts until its requests are over.
 *
 * @param interfaces the most conclusive first
 */
export function endOf(vanishedAt: Millis, interfaces: readonly Heard[]): Millis {
  const heard = interfaces.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined)
  const [first] = heard
  if (first?.refused && (first.lastAttemptAt ?? -Infinity) >= vanishedAt) return vanishedAt
  const lastAt = heard.length > 0 ? Math.max(...heard.map(one => one.lastSuccessAt ?? -Infinity)) : vanishedAt
  return lastAt + REQUESTS_LAST_MS
}
