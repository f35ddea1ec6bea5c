import type { BarrierEntry } from '../apisix/barrier-api.ts'
import type { Vouch } from '../hold/holds.ts'
import { bearerOf, isSameSecret } from '../base/same-secret.ts'

/** The plugin accepts no more entries in one answer (docs/barrier-api.md). */
const MOST = 1000

export interface BarrierEntriesParts {
  /** The token of the Barrier API: a gateway sends the same token that it requires from the agent. */
  readonly token: () => string
  /** The entries that every gateway should hold now. */
  readonly entries: () => readonly BarrierEntry[]
  readonly vouch: () => Vouch
}

/** `GET /v1/barrier-entries`: a gateway fetches it at its start, before it reports ready (docs/barrier-api.md). */
export function barrierEntries(parts: BarrierEntriesParts, authorization: string | undefined): Response {
  const shown = bearerOf(authorization)
  if (shown === undefined || !isSameSecret(shown, parts.token())) {
    const why = 'send the token of the Barrier API as Authorization: Bearer'
    return Response.json(
      { error: 'unauthorized', why },
      { status: 401, headers: { 'www-authenticate': 'Bearer' } }
    )
  }
  const vouch = parts.vouch()
  // With a list that may lack drains, the gateway would report ready too early.
  if (!vouch.ok) return Response.json({ error: 'cannot-vouch', why: vouch.why }, { status: 503 })
  // Entries of running drains come first. Lingering ones may be cut off, and the agent puts those soon afterwards.
  return Response.json({ entries: parts.entries().slice(0, MOST) })
}
