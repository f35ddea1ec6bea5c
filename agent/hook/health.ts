import type { Readiness } from '../report/snapshot/readiness.ts'
import type { Vouch } from '../round/hold/holds.ts'

/** `/healthz`: 200 while the agent makes progress. 500 asks Kubernetes for a restart, so `alive` must not depend on other components. */
export function health(alive: () => Vouch): Response {
  const state = alive()
  return state.ok
    ? Response.json({ alive: true })
    : Response.json({ alive: false, why: state.why }, { status: 500 })
}

/** `/readyz`: 200 once every part has reported ready, otherwise 503 with the missing parts and the reasons. */
export function ready(readiness: Readiness): Response {
  const missing = readiness.missing()
  return missing.length === 0
    ? Response.json({ ready: true })
    : Response.json({ ready: false, missing }, { status: 503 })
}
