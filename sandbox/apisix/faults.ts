import { errorMessage, json, nginxPage, type Answer } from './answer.ts'

/** How a small server misbehaves. Plain data, so it can be sent to a child process. */
export type Fault =
  /** Sends this answer and applies nothing. Without `body`, it is the answer of APISIX or nginx with that status. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly body?: string
      readonly contentType?: string
    }
  /** Takes the request and never answers; nothing is applied. */
  | { readonly kind: 'hang' }
  /** Applies the request and answers `ms` later. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Applies the request, sends half of the answer, and closes the connection. */
  | { readonly kind: 'close-mid-body' }
  /** Applies the request and never answers. So a client whose call times out cannot know whether it was applied. */
  | { readonly kind: 'applied-but-timed-out' }
  /** Closes the connection at once; nothing is applied. */
  | { readonly kind: 'reset' }

export interface FaultRule {
  readonly fault: Fault
  /** How many requests the fault affects; default: all until the rule is removed. */
  readonly times?: number
  /** Only requests with this method. */
  readonly method?: string
  /** Only paths with this prefix. */
  readonly path?: string
  /** Only the path itself. */
  readonly exactly?: boolean
}

export interface Faults {
  /** Adds a rule. Returns the function that removes it. */
  inject(rule: FaultRule): () => void
  clear(): void
  /** The fault for this request, counted as used. The oldest rule wins. */
  take(method: string, path: string): Fault | undefined
}

export function createFaults(): Faults {
  const rules: { rule: FaultRule; left: number }[] = []
  const drop = (entry: (typeof rules)[number]): void => {
    const index = rules.indexOf(entry)
    if (index >= 0) rules.splice(index, 1)
  }
  return {
    inject: rule => {
      const entry = { rule, left: rule.times ?? Infinity }
      rules.push(entry)
      return () => drop(entry)
    },
    clear: () => {
      rules.length = 0
    },
    take: (method, path) => {
      const entry = rules.find(
        ({ rule }) =>
          (rule.method ?? method) === method &&
          (rule.exactly ? path === rule.path : path.startsWith(rule.path ?? ''))
      )
      if (!entry) return undefined
      entry.left -= 1
      if (entry.left <= 0) drop(entry)
      return entry.rule.fault
    }
  }
}

/** The answer after the admin key was changed in APISIX. */
export const WRONG_KEY: Fault = {
  kind: 'status',
  status: 401,
  body: JSON.stringify({ description: 'wrong apikey', error_msg: 'failed to check token' })
}

/** The answer of a `status` fault. */
export function faultAnswer(fault: Extract<Fault, { kind: 'status' }>): Answer {
  if (fault.body !== undefined)
    return {
      status: fault.status,
      headers: { 'content-type': fault.contentType ?? 'application/json' },
      body: fault.body
    }
  if (fault.status === 404) return json(404, { message: 'Key not found' })
  if (fault.status === 409) return errorMessage(409, 'conflict')
  if (fault.status === 429) return errorMessage(429, 'too many requests')
  return nginxPage(fault.status)
}
