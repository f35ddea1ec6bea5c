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
})
