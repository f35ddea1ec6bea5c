import type { Context, Hono } from 'hono'
import { SESSION_COOKIE, SESSION_SECONDS, type Guard, type Connection } from './guard.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface DashboardParts {
  readonly guard: Guard
  /** `undefined`: the page has not been built. The API works without it. */
  readonly assets: Assets | undefined
  /** The snapshot as JSON. */
  readonly state: () => string
}

/** No other origins, no inline code, no frames: so any text in a pod's name stays harmless. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join('; ')

const PROTECTION = {
  'content-security-policy': POLICY,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin'
}

const FOR_EVER = 'public, max-age=31536000, immutable'
const NOT_BUILT = 'The dashboard has not been built: npm run build:dashboard, then restart the agent.\n'

type Env = { Bindings: Connection }

/** Adds the page, its login, and its data. Paths are relative, so a proxy may put them under a prefix. */
export function addDashboard(app: Hono<Env>, { guard, assets, state }: DashboardParts): void {
  const admits = (c: Context<Env>) =>
    guard.admits({ authorization: c.req.header('authorization'), cookie: c.req.header('cookie') })
  const page = (c: Context<Env>, name: string, status: number) => {
    const asset = assets?.get(name)
    return asset
      ? send(c, asset, status, 'no-cache')
      : new Response(NOT_BUILT, { status: 503, headers: { ...PROTECTION, 'content-type': 'text/plain' } })
  }

  app.get('/', c => (admits(c) ? page(c, 'index.html', 200) : page(c, 'login.html', 401)))
  app.post('/login', async c => {
    const given = new URLSearchParams(await c.req.text()).get('token') ?? ''
    const session = guard.login(given.trim())
    if (session === undefined) return page(c, 'login-failed.html', 401)
    // Relative, like the page's own links.
    return new Response(null, {
      status: 303,
      headers: { location: './', 'set-cookie': sessionCookie(c, session) }
    })
  })
  app.get('/assets/:name', c => {
    const name = c.req.param('name')
    const asset = name.endsWith('.html') ? undefined : assets?.get(name)
    return asset ? send(c, asset, 200, FOR_EVER) : c.notFound()
  })
  app.get('/api/state', c =>
    admits(c) ? new Response(state(), { headers: { 'content-type': 'application/json' } }) : unauthorized()
  )
}

const unauthorized = (): Response =>
  Response.json(
    { error: 'unauthorized', why: 'send the token of the dashboard: Authorization: Bearer …' },
    { status: 401, headers: { 'www-authenticate': 'Bearer' } }
  )

function send(c: Context<Env>, { body, gzip, type }: Asset, status: number, caching: string): Response {
  const zipped = gzip && /\bgzip\b/.test(c.req.header('accept-encoding') ?? '') ? gzip : undefined
  return new Response(zipped ?? body, {
    status,
    headers: {
      ...PROTECTION,
      'content-type': type,
      'cache-control': caching,
      vary: 'accept-encoding',
      ...(zipped && { 'content-encoding': 'gzip' })
    }
  })
}

function sessionCookie(c: Context<Env>, session: string): string {
  const secure = c.req.header('x-forwarded-proto') === 'https' ? '; Secure' : ''
  return `${SESSION_COOKIE}=${session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${SESSION_SECONDS}${secure}`
}

/** One file of the page, as it is sent. */
interface Asset {
  readonly body: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer> | undefined
  readonly type: string
}

/** By file name: `index.html`, `login.html`, and the files that they load, whose names contain a content hash. */
type Assets = ReadonlyMap<string, Asset>

/** Where `npm run build:dashboard` puts the page. */
const BUILT_AT = fileURLToPath(new URL('../../../dist/dashboard/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml'
}

/** Reads the built page once: a request never touches the file system. `undefined` if it has not been built. */
export function loadAssets(folder = BUILT_AT): Assets | undefined {
  try {
    const names = readdirSync(folder)
    const read = (name: string) => new Uint8Array(readFileSync(join(folder, name)))
    const assets = names.flatMap((name): [string, Asset][] => {
      const type = TYPES[name.split('.').at(-1) ?? '']
      if (type === undefined) return []
      return [
        [
          name,
          { body: read(name), gzip: names.includes(`${name}.gz`) ? read(`${name}.gz`) : undefined, type }
        ]
      ]
    })
    return assets.some(([name]) => name === 'index.html') ? new Map(assets) : undefined
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw err
  }
}
