import { Hono, type Context } from 'hono'
import { normaliseAddress, bearerOf, isSameSecret, type Connection } from '../report/page/guard.ts'
import { addDashboard, type DashboardParts } from '../report/page/dashboard.ts'
import { ALWAYS, reply, type MissingPart, type Vouch } from '../round/hold/hooks.ts'
import { prestop, type PrestopParts } from './prestop.ts'
import { createHmac } from 'node:crypto'
import { putBatches } from '../gateway/apisix/barrier-api.ts'
import { WIRE } from '../gateway/apisix/barrier-wire.ts'
import type { BarrierKeeper } from '../gateway/barrier/gateways.ts'

export interface ServeParts extends PrestopParts {
  /** Absent if no barrier is configured. */
  readonly barrier?: BarrierEntriesParts | undefined
  /** What the agent needs before it is ready, and lacks. */
  readonly missing: () => readonly MissingPart[]
  /** Not `ok` if the agent makes no progress and only a restart can help. */
  readonly alive: () => Vouch
  /** Absent if the dashboard is not enabled. */
  readonly dashboard?: DashboardParts | undefined
  readonly exposition: { metrics(): Promise<string>; readonly contentType: string }
}

type Env = { Bindings: Connection }
export type App = Hono<Env>

/** The longest accepted body, in bytes. Only `/login` reads a body; all other paths ignore one (a proxy, an unusual hook). */
const LARGEST_BODY = 4096

/** The paths that one port serves. `pages`: the dashboard and the metrics. `hooks`: all others. */
type Served = 'all' | 'hooks' | 'pages'

const HOOKS = '/v1/prestop, /healthz and /readyz'
const PATHS: Readonly<Record<Served, string>> = {
  all: '/v1/prestop, /healthz, /readyz and /metrics',
  hooks: `${HOOKS}; the dashboard and /metrics are on another port: see serve.pagePort`,
  pages: `/metrics; ${HOOKS} are on another port: see serve.port`
}
const DASHBOARD = '; the dashboard is at /, its data at /api/state'
const NO_DASHBOARD = '; the dashboard is not enabled: see serve.dashboard'

/**
 * The agent's HTTP interface, or the part of it that one port serves. Needs no port: `app.request(path, init, connection)` is
 * enough to test it.
 */
export function createApp(parts: ServeParts, served: Served = 'all'): App {
  const app = new Hono<Env>({ getPath: pathOf })
  // These routes come before the middleware that adds headers to all other answers: theirs are there from the start (reply.ts).
  if (served !== 'pages')
    app.on(['GET', 'POST'], '/v1/prestop', c => (isTooLarge(c) ? tooLarge() : prestop(parts, callOf(c))))
  if (served !== 'hooks') {
    const { exposition } = parts
    const headers = { 'content-type': exposition.contentType, ...ALWAYS }
    app.get('/metrics', async c =>
      isTooLarge(c) ? tooLarge() : new Response(await exposition.metrics(), { headers })
    )
  }
  app.use(async (c, next) => {
    if (isTooLarge(c)) return tooLarge()
    await next()
    if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store')
    c.header('x-content-type-options', 'nosniff')
    return undefined
  })

  if (served !== 'pages') addHooks(app, parts)
  if (served !== 'hooks' && parts.dashboard) addDashboard(app, parts.dashboard)
  const dashboard = served === 'hooks' ? '' : parts.dashboard ? DASHBOARD : NO_DASHBOARD
  const why = `there are ${PATHS[served]}${dashboard}`
  app.notFound(() => Response.json({ error: 'not-found', why }, { status: 404 }))
  app.onError((err, c) => {
    parts.log.error({ err, path: c.req.path }, 'request failed')
    return Response.json({ error: 'internal', why: 'see the log of the agent' }, { status: 500 })
  })
  return app
}

function addHooks(app: Hono<Env>, { barrier, alive, missing: lacking }: ServeParts): void {
  if (barrier) {
    app.get('/:wire{v[0-9]+}/barrier-entries', c =>
      barrierEntries(barrier, Number(c.req.param('wire').slice(1)), c.req.header('authorization'))
    )
  }
  app.get('/healthz', () => {
    const { ok, ...state } = alive()
    return Response.json({ alive: ok, ...state }, { status: ok ? 200 : 500 })
  })
  app.get('/readyz', () => {
    const missing = lacking()
    const isReady = missing.length === 0
    return Response.json({ ready: isReady, ...(!isReady && { missing }) }, { status: isReady ? 200 : 503 })
  })
  app.all('/v1/prestop', () =>
    Response.json(
      { error: 'bad-method', why: 'use GET or POST' },
      { status: 405, headers: { allow: 'GET, POST' } }
    )
  )
}

/** The path, with runs of slashes merged: old kubelets call an httpGet hook at `//v1/prestop`. */
function pathOf(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('//') + 2)
  const [path = '/'] = request.url.slice(start).split(/[?#]/, 1)
  return path.replaceAll(/\/{2,}/g, '/')
}

function isTooLarge(c: Context<Env>): boolean {
  return (
    Number(c.req.header('content-length') ?? 0) > LARGEST_BODY ||
    c.req.header('transfer-encoding') !== undefined
  )
}

const tooLarge = (): Response =>
  reply({ error: 'too-large', why: 'send no body' }, 413, { connection: 'close' })

function callOf(c: Context<Env>) {
  return {
    query: new URL(c.req.url).searchParams,
    isPost: c.req.method === 'POST',
    address: normaliseAddress(c.env.incoming.socket.remoteAddress ?? ''),
    signal: c.req.raw.signal,
    hangUp: () => c.env.incoming.socket.destroy?.()
  }
}

export interface BarrierEntriesParts {
  /** The token of the Barrier API, which agent and gateways share. */
  readonly token: () => string
  readonly fetched: BarrierKeeper['fetched']
  readonly vouch: () => Vouch
}

/**
 * The secret with which a gateway reads the entries. This request crosses the network in plain text, so it does not carry the token.
 * The secret is made from the token, and allows no write (docs/barrier-api.md).
 */
export const readSecret = (token: string): string =>
  createHmac('sha1', token).update(`GET /v${WIRE}/barrier-entries`).digest('base64')

/**
 * The answer to `GET /v1/barrier-entries`, with the wire version of the gateway in the path. A gateway sends this request at its start,
 * before it reports ready (docs/barrier-api.md).
 */
export function barrierEntries(
  parts: BarrierEntriesParts,
  version: number,
  authorization: string | undefined
): Response {
  if (version !== WIRE) {
    const older = version < WIRE ? 'the plugin of this gateway' : 'the agents'
    const why = `plugin and agent have different wire versions (${version} and ${WIRE}): upgrade ${older}`
    return Response.json({ error: 'other-wire', why, wire: WIRE }, { status: 409 })
  }
  const shown = bearerOf(authorization)
  if (shown === undefined || !isSameSecret(shown, readSecret(parts.token()))) {
    const why = 'the secret shown is not made from the token of the Barrier API'
    return Response.json(
      { error: 'unauthorized', why },
      { status: 401, headers: { 'www-authenticate': 'Bearer' } }
    )
  }
  const vouch = parts.vouch()
  // If this list lacked a drain, the gateway would report ready too early.
  if (!vouch.ok) return Response.json({ error: 'cannot-vouch', why: vouch.why }, { status: 503 })
  // Entries of running drains come first. Entries of ended drains may be cut off; the agent puts them soon afterwards.
  const { entries, asOf } = parts.fetched()
  const [first = []] = putBatches(entries)
  return Response.json({ wire: WIRE, entries: first, asOf })
}
