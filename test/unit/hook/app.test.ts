import { expect } from 'chai'
import { createGuard } from '../../../agent/report/page/guard.ts'
import {
  createApp,
  type ServeParts,
  barrierEntries,
  readSecret,
  type BarrierEntriesParts
} from '../../../agent/hook/app.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { manualHolds, serveParts } from '../../build/serve.ts'

describe('http', () => {
  const setUp = (differs: Partial<ServeParts> = {}, served?: Parameters<typeof createApp>[1]) => {
    const parts = serveParts(manualHolds(), manualClock(), differs)
    const app = createApp(parts, served)
    const get = (path: string, init: RequestInit = {}) =>
      app.request(path, init, { incoming: { socket: { remoteAddress: '127.0.0.1' } } })
    return { parts, get }
  }

  it('/healthz reports whether the agent makes progress', async () => {
    expect((await setUp().get('/healthz')).status).to.equal(200)
    const stuck = await setUp({ alive: () => ({ ok: false, why: 'no round for 60 s' }) }).get('/healthz')
    expect(stuck.status).to.equal(500)
    expect(await stuck.json()).to.deep.equal({ alive: false, why: 'no round for 60 s' })
  })

  it('/readyz lists the parts that are missing, and why', async () => {
    const missing = await setUp({ missing: () => [{ part: 'watch:pods', why: 'listing' }] }).get('/readyz')
    expect(missing.status).to.equal(503)
    expect(await missing.json()).to.deep.equal({
      ready: false,
      missing: [{ part: 'watch:pods', why: 'listing' }]
    })
    expect((await setUp().get('/readyz')).status).to.equal(200)
  })

  const guard = createGuard({ kind: 'none' }, manualClock())
  const open = { guard, assets: undefined, state: () => '{"at":1}' }

  it('serves hooks and pages on two ports, and each path on one of them', async () => {
    const barrier = {
      token: () => 't',
      fetched: () => ({ entries: [], asOf: undefined }),
      vouch: () => ({ ok: true }) as const
    }
    const both = { dashboard: open, barrier }
    const hooks = setUp(both, 'hooks')
    const pages = setUp(both, 'pages')
    const isServed = async ({ get }: typeof hooks, path: string, method = 'GET') =>
      !(await (await get(path, { method })).text()).includes('"not-found"')
    for (const path of ['/healthz', '/v1/prestop', '/readyz', '/v1/barrier-entries']) {
      expect(await isServed(hooks, path), path).to.equal(true)
      expect(await isServed(pages, path), path).to.equal(false)
    }
    expect(await isServed(pages, '/v1/prestop', 'POST')).to.equal(false)
    for (const path of ['/metrics', '/', '/api/state']) {
      expect(await isServed(pages, path), path).to.equal(true)
      expect(await isServed(hooks, path), path).to.equal(false)
    }
    const why = async ({ get }: typeof hooks) =>
      ((await (await get('/nothing')).json()) as { why: string }).why
    expect(await why(hooks)).to.equal(
      'there are /v1/prestop, /healthz and /readyz; the dashboard and /metrics are on another port: see serve.pagePort'
    )
    expect(await why(pages)).to.match(/^there are \/metrics; .* see serve.port; the dashboard is at \//)
  })

  it('names the valid paths and methods', async () => {
    const { get } = setUp()
    const unknown = await get('/v2/prestop')
    expect(unknown.status).to.equal(404)
    expect(await unknown.json()).to.have.property('error', 'not-found')
    const method = await get('/v1/prestop', { method: 'DELETE' })
    expect(method.status).to.equal(405)
    expect(method.headers.get('allow')).to.equal('GET, POST')
  })

  it('logs the details of a failure, and hides them from the caller', async () => {
    const { parts, get } = setUp({
      alive: () => {
        throw new Error('a bug')
      }
    })
    const response = await get('/healthz')
    expect(response.status).to.equal(500)
    expect(await response.text()).not.to.include('a bug')
    expect(parts.lines.at(-1)).to.include({ msg: 'request failed', path: '/healthz' })
  })
})

const ENTRY = { uid: 'uid-1', ip: '10.0.0.1', state: 'sealed', ttl: 60 } as const
const parts = (differs: Partial<BarrierEntriesParts> = {}): BarrierEntriesParts => ({
  token: () => 'secret',
  fetched: () => ({ entries: [ENTRY], asOf: 7 }),
  vouch: () => ({ ok: true }),
  ...differs
})

const SHOWN = `Bearer ${readSecret('secret')}`

describe('barrier entries', () => {
  it('are given to a gateway that shows the secret made from the token', async () => {
    const response = barrierEntries(parts(), 1, SHOWN)
    expect(response.status).to.equal(200)
    expect(await response.json()).to.deep.equal({ wire: 1, entries: [ENTRY], asOf: 7 })
    expect(readSecret('secret')).to.match(/^[\w+/]{27}=$/)
  })

  for (const [version, older] of [
    [0, 'the plugin of this gateway'],
    [2, 'the agents']
  ] as const)
    it(`are refused for wire version ${version}, with what to upgrade`, async () => {
      const response = barrierEntries(parts(), version, SHOWN)
      expect(response.status).to.equal(409)
      expect(await response.json()).to.deep.equal({
        error: 'other-wire',
        why: `plugin and agent have different wire versions (${version} and 1): upgrade ${older}`,
        wire: 1
      })
    })

  it('are refused without the secret', async () => {
    for (const shown of [
      undefined,
      '',
      'secret',
      'Bearer',
      'Bearer wrong',
      'Bearer secret',
      'Basic secret',
      'Bearer secret2',
      `Bearer ${readSecret('other')}`
    ]) {
      const response = barrierEntries(parts(), 1, shown)
      expect(response.status, shown).to.equal(401)
      expect(await response.text())
        .to.not.include('10.0.0.1')
        .and.not.include('secret"')
    }
  })

  it('are refused while the agent may not know all of them', async () => {
    const response = barrierEntries(parts({ vouch: () => ({ ok: false, why: 'not synced' }) }), 1, SHOWN)
    expect(response.status).to.equal(503)
    expect(await response.json()).to.deep.equal({ error: 'cannot-vouch', why: 'not synced' })
  })

  it('are at most as many as a plugin accepts', async () => {
    const many = Array.from({ length: 1200 }, (_, i) => ({ ...ENTRY, uid: `uid-${i}` }))
    const given = async (entries: readonly object[]) => {
      const response = barrierEntries(
        parts({ fetched: () => ({ entries: entries as never, asOf: 7 }) }),
        1,
        SHOWN
      )
      return ((await response.json()) as { entries: unknown[] }).entries
    }
    expect(await given(many)).to.deep.equal(many.slice(0, 1000))
    const successors = { '80': Array.from({ length: 92 }, (_, i) => `10.0.1.${i}:80`) }
    expect(await given(many.map(one => ({ ...one, successors })))).to.have.lengthOf(180)
  })
})
