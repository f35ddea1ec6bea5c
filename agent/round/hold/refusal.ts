import { reply } from './reply.ts'

/** Why a hook gets no ack, each with its HTTP status. The caller's fallback then runs, unless a retry at another agent succeeds. */
export const REFUSALS = {
  'bad-request': 400,
  'not-named': 400,
  forbidden: 403,
  'unknown-pod': 404,
  'too-many-hooks-of-pod': 429,
  'too-many-hooks': 503,
  'cannot-vouch': 503,
  'cannot-ask-kubernetes': 503,
  'shutting-down': 503,
  'no-answer': 503
} as const

type RefusalCode = keyof typeof REFUSALS

export interface Refusal {
  readonly ok: false
  readonly error: RefusalCode
  readonly why: string
}

/** A refusal of a hook. `why` says what to change. */
export const refuse = (error: RefusalCode, why: string): Refusal => ({ ok: false, error, why })

/** Seconds after which a retry may help: at another agent, or at this one once it has synced. */
const RETRY_AFTER: Partial<Record<RefusalCode, number>> = {
  'too-many-hooks-of-pod': 1,
  'too-many-hooks': 1,
  'cannot-vouch': 1,
  'cannot-ask-kubernetes': 1
}

/** The HTTP response to a refused hook: `{ "error", "why" }` with the status from `REFUSALS`. */
export function refusalResponse({ error, why }: Refusal): Response {
  const retry = RETRY_AFTER[error]
  const headers: Record<string, string> = {}
  if (retry !== undefined) headers['retry-after'] = String(retry)
  return reply({ error, why }, REFUSALS[error], headers)
}
