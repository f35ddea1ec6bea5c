import { createHmac } from 'node:crypto'
import { putBatches } from '../gateway/apisix/barrier-api.ts'
import { WIRE, type BarrierEntry } from '../gateway/apisix/barrier-wire.ts'
import type { Vouch } from '../round/hold/holds.ts'
import { bearerOf, isSameSecret } from '../report/page/guard.ts'

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
  createHmac('sha1', token).update(`GET /v${WIRE}/barrier-entries`).digest('base64')

/**
 * The answer to `GET /v1/barrier-entries`, with the wire version of the gateway in the path. A gateway sends this request at its start,
 * before it reports ready (docs/barrier-api.md).
 */
export function barrierEntries(
  parts: BarrierEntriesParts,
  version: number,
  authorization: string | undefined
): Response {
  if (version !== WIRE) {
    const older = version < WIRE ? 'the plugin of this gateway' : 'the agents'
    const why = `plugin and agent have different wire versions (${version} and ${WIRE}): upgrade ${older}`
    return Response.json({ error: 'other-wire', why, wire: WIRE }, { status: 409 })
  }
  const shown = bearerOf(authorization)
  if (shown === undefined || !isSameSecret(shown, readSecret(parts.token()))) {
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
  const [entries = []] = putBatches(parts.entries())
  return Response.json({ wire: WIRE, entries })
}
