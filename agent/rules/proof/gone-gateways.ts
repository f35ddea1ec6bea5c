import type { Millis } from '../drain/facts.ts'

/** The last results from one interface of a gateway: its barrier, or its Control API. */
export interface Heard {
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** The last attempt was refused: nothing listened at the address. */
  readonly refused: boolean
}

/**
 * How long a vanished gateway that does not answer is assumed to serve, in ms. No request through it is expected to last longer:
 * APISIX's own time-outs are 60 s, and a slow upload takes more. An entry outlives its drain by the same time.
 */
export const REQUESTS_LAST_MS = 120_000

/**
 * When a vanished gateway, whose end was not seen, stops serving: a time in the past, or the time of the next check. The gateway has ended
 * if the first of its interfaces that ever answered refuses connections. A refusal by an interface that never answered (no plugin, a closed
 * port) proves nothing. A gateway that only becomes silent may be frozen or cut off. It counts until its requests are over.
 *
 * @param interfaces the most conclusive first
 */
export function gatewayEndsAt(vanishedAt: Millis, interfaces: readonly Heard[]): Millis {
  const heard = interfaces.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined)
  const [first] = heard
  if (first?.refused && (first.lastAttemptAt ?? -Infinity) >= vanishedAt) return vanishedAt
  const lastAt = heard.length > 0 ? Math.max(...heard.map(one => one.lastSuccessAt ?? -Infinity)) : vanishedAt
  return lastAt + REQUESTS_LAST_MS
}
