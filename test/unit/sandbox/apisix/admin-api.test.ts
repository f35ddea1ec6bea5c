import { expect } from 'chai'
import type { Fault } from '../../../../sandbox/apisix/faults.ts'
import { adminOfEachTest, type Reply } from './fixture.ts'
import { until } from '../../../build/apisix.ts'
import { rowsOf } from '../../../build/rows.ts'

/** Faults that no other test would miss if they did nothing: an Admin API without a fault passes their tests too. */
describe('sandbox/apisix Admin API: faults', () => {
  const admin = adminOfEachTest()
  const { ask } = admin
  const nodes = (): unknown => admin.store.get('/apisix/upstreams/u')?.value['nodes']
  const removeA = (): Promise<Reply> => ask('PATCH', 'upstreams/u', { nodes: { a: null } })
  const inject = (fault: Fault) => admin.api.faults.inject({ fault, times: 1, method: 'PATCH' })
  beforeEach(() => ask('PUT', 'upstreams/u', { nodes: { a: 1, b: 1 } }))

  it('applied but timed out: no answer, and it is done', async () => {
    inject({ kind: 'applied-but-timed-out' })
    let answered = false
    void removeA().then(
      () => (answered = true),
      () => {}
    )
    await until('the nodes are written', () => JSON.stringify(nodes()) === '{"b":1}')
    expect((await ask('GET', 'upstreams/u')).status).to.equal(200)
    expect(answered).to.equal(false)
  })

  it('slow: applied late; closed in the middle of the body: applied', async () => {
    inject({ kind: 'slow', ms: 40 })
    const began = performance.now()
    expect((await removeA()).status).to.equal(200)
    expect(performance.now() - began).to.be.greaterThan(38)
    inject({ kind: 'close-mid-body' })
    expect(await ask('PATCH', 'upstreams/u', { nodes: { b: 2 } })).to.include({
      status: 200,
      truncated: true
    })
    expect(nodes()).to.deep.equal({ b: 2 })
  })

  it('reset, and etcd down: nothing applied', async () => {
    inject({ kind: 'reset' })
    expect(await removeA().catch((err: NodeJS.ErrnoException) => err.code)).to.equal('ECONNRESET')
    admin.store.health = 'down'
    const { status, body } = await removeA()
    expect([status, JSON.parse(body)]).to.deep.equal([
      503,
      { error_msg: 'has no healthy etcd endpoint available' }
    ])
    expect(nodes()).to.deep.equal({ a: 1, b: 1 })
  })
})

interface Refusal {
  readonly from: string
  readonly ask: readonly [method: string, path: string]
  readonly body: unknown
  readonly says: string
}

const REFUSALS = rowsOf('../../../recordings/refusals.yaml', import.meta.url) as readonly Refusal[]
const NODES = { '127.0.0.1:8080': 1 }
const INVALID = 'invalid configuration: '

describe('sandbox/apisix refuses what APISIX refuses, in its words', () => {
  const admin = adminOfEachTest()
  const { ask } = admin

  beforeEach(() =>
    ask('PUT', 'upstreams/here', { type: 'roundrobin', nodes: NODES, labels: { team: 'shop' } })
  )

  for (const { from, ask: asked, body: sent, says } of REFUSALS)
    it(`${asked[0]} ${asked[1]}: ${says.slice(0, 100)} (${from})`, async () => {
      const before = admin.store.revision
      const { status, body } = await ask(...asked, sent)
      expect([status, JSON.parse(body)]).to.deep.equal([400, { error_msg: says }])
      // A POST takes an id from the store only after the check of its body, so the revision must be the same.
      expect(admin.store.revision, 'nothing was written').to.equal(before)
    })

  it('refuses a body of more than 1.5 MiB (routes4.t 16)', async () => {
    const route = { uri: '/', upstream: { nodes: NODES }, desc: 'x'.repeat(1.5 * 1024 * 1024) }
    const size = JSON.stringify(route).length
    const { status, body } = await ask('PUT', 'routes/1', route)
    expect([status, body]).to.deep.equal([
      400,
      `{"error_msg":"invalid request body: request size ${size} is greater than the maximum size 1572864 allowed"}\n`
    ])
  })

  it('does not create consumers by POST (consumers.t: `kind` is single)', async () => {
    const { status, body } = await ask('POST', 'consumers', { username: 'jack' })
    expect([status, JSON.parse(body)]).to.deep.equal([
      405,
      { error_msg: 'not supported `POST` method for consumer' }
    ])
  })

  it('takes an array as a body: an empty one changes nothing, a filled one has the fields 1, 2, …', async () => {
    expect((await ask('PATCH', 'upstreams/here', [])).status).to.equal(200)
    expect(admin.store.get('/apisix/upstreams/here')?.value['nodes']).to.deep.equal(NODES)
    expect((await ask('PUT', 'services/s', [])).status).to.equal(201)
    const { status, body } = await ask('PATCH', 'upstreams/here', ['a'])
    expect([status, JSON.parse(body)]).to.deep.equal([
      400,
      { error_msg: `${INVALID}additional properties forbidden, found 1` }
    ])
  })

  it('accepts valid objects: every field of a controller, health checks, standby nodes, several hosts', async () => {
    const checks = {
      active: { http_path: '/', healthy: { interval: 1, successes: 1 }, unhealthy: { http_statuses: [500] } }
    }
    const upstream = {
      name: 'shop_web_80',
      desc: 'd',
      labels: { a: 'b' },
      type: 'chash',
      key: 'remote_addr',
      checks,
      timeout: { connect: 1, send: 1, read: 0.5 },
      nodes: [{ host: '10.0.0.1', port: 80, weight: 0, priority: -1 }]
    }
    const got = [
      await ask('PUT', 'upstreams/u', upstream),
      await ask('PUT', 'services/s', { name: 's', upstream, hosts: ['a.example', '*.b.example'] }),
      await ask('PUT', 'routes/r', {
        uris: ['/a', '/b'],
        service_id: 's',
        remote_addrs: ['10.0.0.0/8', '::1']
      }),
      await ask('PUT', 'consumers', { username: 'jack', plugins: {} })
    ]
    expect(got.map(({ status, body }) => [status, status === 201 ? '' : body])).to.deep.equal(
      got.map(() => [201, ''])
    )
  })
})
