import type { Millis } from '../drain/facts.ts'

/** What one interface of a gateway has shown: its barrier, or its Control API. */
export interface Heard {
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** The last attempt found that nothing listens there. */
  readonly refused: boolean
}

/**
 * How long a gateway that vanished and answers nothing is taken to serve, in ms: what a request can last that goes through it
 * (APISIX's own time-outs are 60 s, a slow upload takes longer). As long as an entry outlives its drain.
 */
export const REQUESTS_LAST_MS = 120_000

/**
 * When a gateway that vanished without having been seen to end serves no more: a time that is over, or the one at which to look again.
 * It has ended when an interface that it had refuses connections; one that never answered (no plugin, a closed port) says
 * nothing by that. One that only falls silent may be frozen or behind a network that is cut: it counts until its requests are over.
 *
 * @param interfaces most telling first
 */
export function endOf(vanishedAt: Millis, interfaces: readonly Heard[]): Millis {
  const heard = interfaces.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined)
  const [first] = heard
  if (first?.refused && (first.lastAttemptAt ?? -Infinity) >= vanishedAt) return vanishedAt
  const lastAt = heard.length > 0 ? Math.max(...heard.map(one => one.lastSuccessAt ?? -Infinity)) : vanishedAt
  return lastAt + REQUESTS_LAST_MS
}
