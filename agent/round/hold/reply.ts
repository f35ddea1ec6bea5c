import { isOwnLimit, type Ack, type Hook } from '../../rules/drain/drain.ts'

/** Headers of every answer. */
export const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/**
 * A hook's answer. A Response made from a string with all of its headers goes straight to the socket. With `Response.json`, or with
 * headers added later, `@hono/node-server` reads it as a web stream. That costs half a millisecond more in an agent that has just
 * started, and hundreds of hooks may come at once.
 */
export const reply = (
  body: object,
  status: number,
  headers: Readonly<Record<string, string>> = {}
): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...ALWAYS, ...headers }
  })

/**
 * Returns a function that tells whether an answer is the first of its kind for its pod. Anybody can repeat a call, so only first answers are
 * logged, counted and shown. The latest 10,000 are remembered.
 */
export function createFirsts(): (hook: Hook, ack: Ack) => boolean {
  const given = new Set<string>()
  return (hook, ack) => {
    const key = `${isOwnLimit(hook, ack) ? 'limit' : ack.status} ${hook.uid}`
    const isFirst = !given.has(key)
    given.add(key)
    if (given.size > 10_000) given.delete(given.values().next().value!)
    return isFirst
  }
}
