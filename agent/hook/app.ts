import { Hono, type Context } from 'hono'
import type { Readiness } from '../base/readiness.ts'
import { normaliseAddress, type Connection } from '../page/address.ts'
import { addDashboard, type DashboardParts } from '../page/dashboard.ts'
import { barrierEntries, type BarrierEntriesParts } from './barrier-entries.ts'
import { health, ready } from './health.ts'
import type { Vouch } from '../hold/holds.ts'
import { prestop, type PrestopParts } from './prestop.ts'
import { reply } from '../hold/reply.ts'
import type { Snapshot } from '../page/snapshot.ts'

export interface ServeParts extends PrestopParts {
  /** Absent if no barrier is configured. */
  readonly barrier?: BarrierEntriesParts | undefined
  readonly readiness: Readiness
  /** False when the agent makes no progress of its own and only a restart can help. */
  readonly alive: () => Vouch
  /** The last round's snapshot; `undefined` before the first round. */
  readonly snapshot: () => Snapshot | undefined
  /** Absent if the dashboard is not enabled. */
  readonly dashboard?: DashboardParts | undefined
  readonly exposition: { metrics(): Promise<string>; readonly contentType: string }
}

type Env = { Bindings: Connection }

/** In bytes. Only `/login` reads a body; a small one from a proxy or an unusual hook is ignored. */
const LARGEST_BODY = 4096

const PATHS = '/v1/prestop, /healthz, /readyz and /metrics'
const DASHBOARD = '; the dashboard is at /, its data at /api/state and /api/stream'
const NO_DASHBOARD = '; the dashboard is not enabled: see serve.dashboard'

/** The agent's HTTP interface. Needs no port: `app.request(path, init, connection)` is enough to test it. */
export function createApp(parts: ServeParts): Hono<Env> {
  const app = new Hono<Env>({ getPath: pathOf })
  // Registered before the middleware that adds headers to all other answers: hook answers have their own (reply.ts).
  app.on(['GET', 'POST'], '/v1/prestop', c => (isTooLarge(c) ? tooLarge() : prestop(parts, callOf(c))))
  app.use(async (c, next) => {
    if (isTooLarge(c)) return tooLarge()
    await next()
    if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store')
    c.header('x-content-type-options', 'nosniff')
    return undefined
  })

  const { barrier } = parts
  if (barrier) {
    app.get('/v1/barrier-entries', c => barrierEntries(barrier, c.req.header('authorization')))
  }
  app.get('/healthz', () => health(parts.alive))
  app.get('/readyz', () => ready(parts.readiness))
  app.get('/metrics', async () => {
    const { exposition } = parts
    return new Response(await exposition.metrics(), { headers: { 'content-type': exposition.contentType } })
  })
  if (parts.dashboard) addDashboard(app, parts.dashboard, parts.snapshot)

  app.all('/v1/prestop', () =>
    Response.json(
      { error: 'bad-method', why: 'use GET or POST' },
      { status: 405, headers: { allow: 'GET, POST' } }
    )
  )
  app.notFound(() =>
    Response.json(
      { error: 'not-found', why: `there are ${PATHS}${parts.dashboard ? DASHBOARD : NO_DASHBOARD}` },
      { status: 404 }
    )
  )
  app.onError((err, c) => {
    parts.log.error({ err, path: c.req.path }, 'request failed')
    return Response.json({ error: 'internal', why: 'see the log of the agent' }, { status: 500 })
  })
  return app
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
    address: normaliseAddress(c.env.incoming.socket.remoteAddress ?? ''),
    authorization: c.req.header('authorization'),
    signal: c.req.raw.signal
  }
}
