import { expect } from 'chai'
import type { Fault } from '../../../../sandbox/apisix/faults.ts'
import { adminOfEachTest, eventually, type Reply } from './fixture.ts'

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
    await eventually(() => JSON.stringify(nodes()) === '{"b":1}')
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
