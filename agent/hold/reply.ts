/** Of every answer. */
const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/**
 * A hook's answer, whole. What is made from a string with all of its headers goes straight to the socket; `Response.json`, and
 * headers that are added later, make `@hono/node-server` read it as a web stream: half a millisecond more for a hook in an
 * agent that has just started, and hundreds may come at once.
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
