/** Names under which a secret could be logged, in lower case. `key` is not among them, because the keys of holders are logged. */
const SECRET_NAMES = new Set(['authorization', 'x-api-key', 'apikey', 'adminkey', 'token', 'password'])
const CENSORED = '<not shown>'
/** How many levels are searched: logged objects are flat, and the headers of a request are the deepest part. */
const DEPTH = 3

type Facts = Readonly<Record<string, unknown>>

/**
 * Returns the facts with a placeholder for each value under the name of a secret. The agent logs no secret, so normally the same
 * object is returned. An Error stays as it is, because its serializer selects the fields. pino's `redact` does the same, but took
 * longer than all decisions about a drain.
 */
export function censor(facts: Facts, depth = DEPTH): Record<string, unknown> {
  let censored: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(facts)) {
    const shown = SECRET_NAMES.has(name.toLowerCase()) ? CENSORED : inner(value, depth)
    if (shown !== value) (censored ??= { ...facts })[name] = shown
  }
  return censored ?? facts
}

function inner(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Error || depth === 1) return value
  if (!Array.isArray(value)) return censor(value as Facts, depth - 1)
  const items: unknown[] = value
  const shown = items.map(item => inner(item, depth - 1))
  return shown.some((item, i) => item !== items[i]) ? shown : items
}

/** Text from outside, for a terminal: without the control characters that could move its cursor, or hide or rewrite a line. */
export const clean = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, '')
