import { expect } from 'chai'
import { sideBySide } from '../build/side-by-side.ts'

const FOUND = { type: 'roundrobin', discovery_type: 'kubernetes', service_name: 'shop/web:http' }

describe('feature: nodes that APISIX finds by discovery', () => {
  const test = sideBySide()

  test('without the plugin nothing is proved, so the hook gets its 503 at once', async start => {
    const rig = await start({ discovery: true })
    const old = rig.pod('web-1')
    rig.service('web', [old])
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(old)
    const { status, body, ranMs } = await rig.hook(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved', evidence: 'none' })
    expect(body.why).to.contain('upstreams/found: APISIX finds its nodes')
    expect(body.change).to.contain('load the plugin')
    expect(ranMs).to.be.below(1000)
    expect(body.holders).to.deep.include({
      key: 'upstreams/found',
      state: 'foreign',
      why: 'APISIX finds these nodes by discovery: nothing to edit'
    })
    expect(rig.writes).to.deep.equal([])
  })

  test('the barrier proves the drain as usual', async start => {
    const rig = await start({ barrier: true })
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.service('web', [old, fresh])
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(rig.writes).to.deep.equal([])
  })
})
