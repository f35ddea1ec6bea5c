import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { secretOf } from '../../../build/config.ts'
import { loadAssets } from '../../../../agent/report/page/dashboard.ts'
import { createGuard } from '../../../../agent/report/page/guard.ts'
import { createApp } from '../../../../agent/hook/app.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { manualHolds, serveParts } from '../../../build/serve.ts'
import { sources } from '../../../build/snapshot.ts'

describe('dashboard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dashboard-'))
  for (const [name, text] of [
    ['index.html', 'the page'],
    ['login.html', 'the login'],
    ['login-failed.html', 'not the token'],
    ['page-1.js', 'let a'],
    ['page-1.js.gz', 'zipped'],
    ['built-from.txt', 'nobody asks for this']
  ] as const) {
    writeFileSync(join(folder, name), text)
  }
  after(() => rmSync(folder, { recursive: true }))

  const setUp = (enabled = true, built = true) => {
    const clock = manualClock()
    const guard = createGuard({ kind: 'token', token: secretOf('t0ken') }, clock)
    const parts = serveParts(manualHolds(), clock, {
      ...(enabled && {
        dashboard: {
          guard,
          assets: built ? loadAssets(folder) : undefined,
          state: () => JSON.stringify(sources())
        }
      })
    })
    const app = createApp(parts)
    return (path: string, init: RequestInit = {}) =>
      app.request(path, init, { incoming: { socket: { remoteAddress: '127.0.0.1' } } })
  }
  const bearer = { headers: { authorization: 'Bearer t0ken' } }

  it('shows a client without a token only the login', async () => {
    const get = setUp()
    const page = await get('/')
    expect(page.status).to.equal(401)
    expect(await page.text()).to.equal('the login')
    const state = await get('/api/state')
    expect(state.status).to.equal(401)
    expect(await state.text()).not.to.include('drains')
  })

  it('shows the page and the state to a client with the token', async () => {
    const get = setUp()
    const page = await get('/', bearer)
    expect(await page.text()).to.equal('the page')
    expect(page.headers.get('cache-control')).to.equal('no-cache')
    expect((await get('/api/state', bearer)).status).to.equal(200)
  })

  it('accepts the token once, and after that a cookie that no script can read', async () => {
    const get = setUp()
    const login = (token: string, headers = {}) =>
      get('/login', { method: 'POST', body: new URLSearchParams({ token }), headers })
    const failed = await login('guess')
    expect(failed.status).to.equal(401)
    expect(await failed.text()).to.equal('not the token')
    expect(failed.headers.get('set-cookie')).to.equal(null)
    const passed = await login(' t0ken ')
    expect(passed.status).to.equal(303)
    expect(passed.headers.get('location')).to.equal('./')
    const cookie = passed.headers.get('set-cookie')!
    expect(cookie).to.match(/; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/)
    const [session = ''] = cookie.split(';')
    expect(await (await get('/', { headers: { cookie: session } })).text()).to.equal('the page')
    const behindTls = await login('t0ken', { 'x-forwarded-proto': 'https' })
    expect(behindTls.headers.get('set-cookie')).to.match(/; Secure$/)
  })

  it('allows no inline code, no foreign content and no framing', async () => {
    const { headers } = await setUp()('/')
    expect(headers.get('content-security-policy')).to.include("default-src 'none'")
    expect(headers.get('content-security-policy')).not.to.include('unsafe')
    expect(headers.get('x-frame-options')).to.equal('DENY')
    expect(headers.get('x-content-type-options')).to.equal('nosniff')
  })

  it('lets files be cached for ever, because their names change with their content', async () => {
    const get = setUp()
    const plain = await get('/assets/page-1.js')
    expect(plain.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable')
    expect(plain.headers.get('content-type')).to.equal('text/javascript; charset=utf-8')
    expect(await plain.text()).to.equal('let a')
    const zipped = await get('/assets/page-1.js', { headers: { 'accept-encoding': 'br, gzip' } })
    expect(zipped.headers.get('content-encoding')).to.equal('gzip')
    expect(await zipped.text()).to.equal('zipped')
    const hidden = ['index.html', 'built-from.txt', 'page-1.js.gz', '..%2Fpackage.json', 'none.js']
    for (const name of hidden) expect((await get(`/assets/${name}`)).status, name).to.equal(404)
  })

  it('leaves the other endpoints open', async () => {
    const get = setUp()
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await get(path)).status, path).to.equal(200)
  })

  it('reports that it is not enabled, or was not built', async () => {
    const off = await setUp(false)('/api/state', bearer)
    expect(off.status).to.equal(404)
    expect(await off.text()).to.include('serve.dashboard')
    expect((await setUp(false)('/', bearer)).status).to.equal(404)
    const bare = await setUp(true, false)('/', bearer)
    expect(bare.status).to.equal(503)
    expect(await bare.text()).to.include('npm run build:dashboard')
    expect(loadAssets(join(folder, 'nowhere'))).to.equal(undefined)
  })
})
