import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import type { TestPod } from '../build/pods.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { SHORT } from '../build/rig.ts'

const FOUND = { type: 'roundrobin', discovery_type: 'kubernetes', service_name: 'shop/web:http' }

/** The nodes in the form of the gateway's watch. */
const ports = (...pods: readonly TestPod[]) => ({
  http: pods.map(({ ip, port }) => ({ host: ip, port, weight: 50 }))
})

describe('feature: nodes that APISIX finds by discovery', () => {
  const test = sideBySide()

  test('without a dump nothing shows that a pod is not routed: its hook is held for the floor', async start => {
    const rig = await start({ config: SHORT })
    const old = rig.pod('web-1')
    rig.service('web', [old])
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(old)
    const { status, body } = await rig.hook(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved', evidence: 'none' })
    expect(body.holders).to.deep.include({
      key: 'upstreams/found',
      state: 'foreign',
      why: 'APISIX finds these nodes by discovery: nothing to edit'
    })
    expect(rig.writes).to.deep.equal([])
  })

  test('without the plugin the drain is observed: the gateway’s own dump no longer lists the pod', async start => {
    const rig = await start({ discovery: true, config: { DRAIN_FLOOR: '20s' } })
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.service('web', [old, fresh])
    rig.discovery?.set('shop/web', ports(old, fresh))
    rig.put('upstreams', 'found', FOUND)
    await rig.settled()
    rig.end(old)
    let answered = false
    const reply = rig.hook(old).finally(() => (answered = true))
    const problem = () =>
      [...rig.agent.loop.drains().values()].flatMap(({ phase, ...drain }) =>
        phase === 'draining' && 'verdict' in drain ? drain.verdict.gateways.map(({ why }) => why) : []
      )
    await until('it is seen there', () => problem().some(why => why.includes(`still lists ${old.ip}`)))
    expect(answered).to.equal(false)
    rig.discovery?.set('shop/web', ports(fresh))
    expect((await reply).body).to.include({ result: 'removed', evidence: 'observed' })
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
