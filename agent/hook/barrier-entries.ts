import type { BarrierEntry } from '../apisix/barrier-api.ts'
import type { Vouch } from '../hold/holds.ts'
import { bearerOf, isSameSecret } from '../base/same-secret.ts'

/** A plugin takes no more in one answer (docs/barrier-api.md). */
const MOST = 1000

export interface BarrierEntriesParts {
  /** The token of the Barrier API: gateways show the one that they are asked for. */
  readonly token: () => string
  /** What every gateway should hold now. */
  readonly entries: () => readonly BarrierEntry[]
  readonly vouch: () => Vouch
}

/** `GET /v1/barrier-entries`: what a gateway fetches when it starts, before it says that it is ready (docs/barrier-api.md). */
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
  // A list that may lack drains would let the gateway say that it is ready.
  if (!vouch.ok) return Response.json({ error: 'cannot-vouch', why: vouch.why }, { status: 503 })
  // Entries of running drains come first. Lingering ones may be cut off; the agent puts them right after.
  return Response.json({ entries: parts.entries().slice(0, MOST) })
}
