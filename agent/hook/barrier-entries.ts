import { createHmac } from 'node:crypto'
import type { BarrierEntry } from '../gateway/apisix/barrier-wire.ts'
import type { Vouch } from '../round/hold/holds.ts'
import { bearerOf, isSameSecret } from '../base/same-secret.ts'

/** The most entries that the plugin accepts in one answer (docs/barrier-api.md). */
const MOST = 1000

export interface BarrierEntriesParts {
  /** The token of the Barrier API, which agent and gateways share. */
  readonly token: () => string
  /** The entries that every gateway should hold now. */
  readonly entries: () => readonly BarrierEntry[]
  readonly vouch: () => Vouch
}

/**
 * The secret with which a gateway reads the entries. This request crosses the network in plain text, so it does not carry the token.
 * The secret is made from the token, and allows no write (docs/barrier-api.md).
 */
export const readSecret = (token: string): string =>
  createHmac('sha1', token).update('GET /v1/barrier-entries').digest('base64')

/** The answer to `GET /v1/barrier-entries`. A gateway sends this request at its start, before it reports ready (docs/barrier-api.md). */
export function barrierEntries(parts: BarrierEntriesParts, authorization: string | undefined): Response {
  const shown = bearerOf(authorization)
  const token = parts.token()
  // Plugins before 0.2.0 send the token itself.
  if (shown === undefined || !(isSameSecret(shown, readSecret(token)) || isSameSecret(shown, token))) {
    const why = 'the secret shown is not made from the token of the Barrier API'
    return Response.json(
      { error: 'unauthorized', why },
      { status: 401, headers: { 'www-authenticate': 'Bearer' } }
    )
  }
  const vouch = parts.vouch()
  // If this list lacked a drain, the gateway would report ready too early.
  if (!vouch.ok) return Response.json({ error: 'cannot-vouch', why: vouch.why }, { status: 503 })
  // Entries of running drains come first. Entries of ended drains may be cut off; the agent puts them soon afterwards.
  return Response.json({ entries: parts.entries().slice(0, MOST) })
}
