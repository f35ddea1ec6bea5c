import type { GatewayFact, Millis } from '../drain/facts.ts'

/** The last results from one interface of a gateway: its barrier, or its Control API. */
export interface Heard {
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** The last attempt was refused: nothing listened at the address. */
  readonly refused: boolean
}

/**
 * How long a gateway that is not Ready and does not answer is assumed to serve, in ms. No request through it is expected to last longer:
 * APISIX's own time-outs are 60 s, and a slow upload takes more. An entry outlives its drain by the same time.
 */
export const REQUESTS_LAST_MS = 120_000

/**
 * When a gateway that is not Ready, Terminating, or whose object is gone, stops serving: a time in the past, or the time of the next check.
 * It has ended if no container of it runs and its barrier refuses connections. If its object is gone, the first of its interfaces that ever
 * answered has to refuse: a refusal by another one (no plugin, a closed port) proves nothing. A gateway that only becomes silent may be frozen
 * or cut off. It counts until its requests are over.
 *
 * @param interfaces the most conclusive first
 */
export function gatewayEndsAt(
  { vanishedAt, unreadyAt = Infinity, stopped }: Pick<GatewayFact, 'vanishedAt' | 'unreadyAt' | 'stopped'>,
  interfaces: readonly Heard[]
): Millis {
  const since = vanishedAt ?? unreadyAt
  const heard = interfaces.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined)
  const [first] = stopped ? interfaces : vanishedAt === undefined ? [] : heard
  if (first?.refused && (first.lastAttemptAt ?? -Infinity) >= since) return since
  // A gateway that was silent before, and is cut off from the agent only, may serve until now.
  const silentSince = vanishedAt !== undefined && heard.length > 0 ? -Infinity : since
  return Math.max(silentSince, ...heard.map(one => one.lastSuccessAt ?? -Infinity)) + REQUESTS_LAST_MS
}
