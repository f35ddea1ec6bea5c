import type { Snapshot } from '../snapshot/snapshot.ts'

const texts = new WeakMap<Snapshot, string>()

/** The snapshot as JSON. A snapshot is frozen, so it is serialised once for all requests. */
export function snapshotText(snapshot: Snapshot): string {
  const known = texts.get(snapshot)
  if (known !== undefined) return known
  const text = JSON.stringify(snapshot)
  texts.set(snapshot, text)
  return text
}

/** `/api/state`: the last round's snapshot; 503 before the first one. */
export function state(snapshot: Snapshot | undefined): Response {
  if (!snapshot) {
    return Response.json({ error: 'no-state', why: 'the first round has not ended yet' }, { status: 503 })
  }
  return new Response(snapshotText(snapshot), { headers: { 'content-type': 'application/json' } })
}
