/** Headers of every answer. */
const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

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
