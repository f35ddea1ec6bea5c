import { expect } from 'chai'
import { sideBySide } from '../build/side-by-side.ts'
import { SHORT } from '../build/rig.ts'

const FOUND = { type: 'roundrobin', discovery_type: 'kubernetes', service_name: 'shop/web:http' }

describe('feature: nodes that APISIX finds by discovery', () => {
  const test = sideBySide()

  test('nobody can say that a pod of such a Service is not routed: it is held for the floor', async start => {
    const rig = await start({ config: SHORT })
    const old = rig.pod('web-1')
    rig.service('web', [old])
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(old)
    const { body } = await rig.hook(old)
    expect(body).to.include({ result: 'removed', evidence: 'timer' })
    expect(body.holders).to.deep.include({
      key: 'upstreams/found',
      state: 'foreign',
      why: 'APISIX finds these nodes by discovery: nothing to edit'
    })
    expect(rig.writes).to.deep.equal([])
  })

  test('a pod of another Service is not routed', async start => {
    const rig = await start()
    const [web, other] = [rig.pod('web-1'), rig.pod('other-1')]
    rig.service('web', [web])
    rig.service('other', [other])
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(other)
    expect((await rig.hook(other)).body).to.include({ result: 'not-routed', evidence: 'observed' })
  })

  test('the barrier proves it all the same', async start => {
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
