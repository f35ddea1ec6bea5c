import { expect } from 'chai'
import { crc32 } from 'node:zlib'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { JsonObject } from '../../sandbox/apisix/json.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const FIRST = { labels: { 'managed-by': 'apisix-ingress-controller' } }
const SECOND = { labels: { 'manager-by': 'apisix-ingress-controller', 'k8s/name': 'web' } }

const owned = (pods: readonly TestPod[]) => ({ type: 'roundrobin', ...FIRST, nodes: arrayOf(pods) })

/** Makes two pods with real servers behind one upstream of ingress controller 1.8, with a route and load. */
async function web(rig: Rig) {
  const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
  await Promise.all([rig.serve(old), rig.serve(fresh)])
  rig.service('web', [old, fresh])
  rig.put('upstreams', 'web', owned([old, fresh]))
  rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
  await rig.settled('web', 2)
  return { old, fresh }
}

const phases = (rig: Rig) => [...rig.agent.loop.drains().values()].map(({ phase }) => phase)
const PATCH = 'PATCH /apisix/admin/upstreams/web'
const putBacks = (rig: Rig) => rig.agent.lines.filter(({ msg }) => msg === 'node put back')

describe('feature: holders that another writer changes', () => {
  const test = sideBySide({ barrier: true })

  for (const form of ['map', 'list'] as const)
    test(`with the plugin only the owner writes, even when the pod is gone (${form})`, async start => {
      const rig = await start()
      const { old, fresh } = await web(rig)
      const nodes = form === 'map' ? { [old.node]: 1, [fresh.node]: 1 } : arrayOf([old, fresh])
      rig.put('upstreams', 'web', { ...owned([]), nodes })
      await rig.settled()
      await until(
        'the agent knows',
        () => rig.agent.holder('upstreams/web')?.form !== (form === 'map' ? 'array' : 'map')
      )
      expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
      rig.gone(old)
      await until('the agent knows', () => phases(rig).includes('gone'))
      const readAt = rig.agent.readAt() ?? 0
      await until('its holders were listed since', () => (rig.agent.readAt() ?? 0) > readAt)
      expect(rig.agent.loop.lastPlan().kept.map(({ why }) => why)).to.deep.equal(['owner'])
      rig.put('upstreams', 'web', owned([fresh]))
      await until('the drain is over', () => phases(rig).length === 0)
      expect(rig.writes).to.deep.equal([])
    })

  test('a list without an ingress controller is written when the pod is gone, and a map at once', async start => {
    const rig = await start()
    const { old, fresh } = await web(rig)
    const byHand = (nodes: JsonObject | JsonObject[]) => ({ type: 'roundrobin', nodes })
    rig.put('upstreams', 'web', byHand(arrayOf([old, fresh])))
    rig.put('upstreams', 'map', byHand({ [old.node]: 1, [fresh.node]: 1 }))
    await rig.settled()
    await until('the agent knows', () => rig.agent.holder('upstreams/web')?.owner === 'unknown')
    await until('and the map', () => rig.agent.nodes('upstreams/map') === 2)
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await until('the map is written', () => rig.nodes('upstreams/map').length === 1)
    expect(rig.nodes('upstreams/web')).to.have.length(2)
    expect(rig.agent.loop.lastPlan().kept.map(({ why }) => why)).to.deep.equal(['owner'])
    rig.gone(old)
    await until('the list is written', () => rig.nodes('upstreams/web').length === 1)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.writes).to.deep.equal(['PATCH /apisix/admin/upstreams/map', PATCH])
  })

  test('without the plugin the owner writes its list, and the agent waits for that', async start => {
    const rig = await start({ barrier: false })
    const { old, fresh } = await web(rig)
    const hook = rig.drain(old)
    await until('it is left to its owner', () =>
      rig.agent.loop.lastPlan().kept.some(({ why }) => why === 'owner')
    )
    rig.put('upstreams', 'web', owned([fresh]))
    expect((await hook).body).to.include({ result: 'drained', evidence: 'observed' })
    expect(rig.writes).to.deep.equal([])
  })

  test('a barrier that never answered this agent is none: a list without an ingress controller is written at once', async start => {
    const rig = await start()
    const { old, fresh } = await web(rig)
    await rig.gateways[0]?.partition({ barrier: 'refused' })
    await rig.agent.close()
    const next = await rig.startAgent()
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: arrayOf([old, fresh]) })
    await until('the agent knows', () => next.holder('upstreams/web')?.owner === 'unknown')
    expect((await rig.drain(old)).body).to.include({ result: 'unproved' })
    await until('it is written', () => rig.writes.join() === PATCH)
  })

  for (const form of ['map', 'list'] as const)
    test(`a writer that puts an old view back every 200 ms, as a ${form}: no request reaches the pod${form === 'map' ? ', and the writer is named' : ', and the agent writes nothing before the pod is gone'}`, async start => {
      const rig = await start()
      const { old, fresh } = await web(rig)
      const nodes = form === 'map' ? { [old.node]: 1, [fresh.node]: 1 } : arrayOf([old, fresh])
      let views = 0
      const putBack = () => {
        views += 1
        rig.put('upstreams', 'web', { type: 'roundrobin', nodes })
      }
      putBack()
      await until(
        'the agent knows',
        () => rig.agent.holder('upstreams/web')?.form !== (form === 'map' ? 'array' : 'map')
      )
      const load = rig.load(100)
      const writer = setInterval(putBack, 200)
      try {
        expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
        const before = views
        if (form === 'map')
          await until('it was put back and taken out again', () => putBacks(rig).length >= 2)
        else await until('it was put back', () => views >= before + 10)
      } finally {
        clearInterval(writer)
      }
      if (form === 'map')
        expect(putBacks(rig)[0]).to.include({
          holder: 'upstreams/web',
          node: old.node,
          owner: 'unknown'
        })
      else expect(rig.writes).to.deep.equal([])
      // The rig checks at the end of each test that no request arrived after the answer.
      rig.gone(old)
      await until('it is out for good', () => rig.nodes('upstreams/web').length === 1)
      await load.stop()
    })

  test('a PUT in the middle of our edit: its author must write the added node again, and the agent adds nothing for it', async start => {
    const rig = await start({ barrier: false })
    const { old, fresh } = await web(rig)
    const byHand = (pods: readonly TestPod[]) => ({ type: 'roundrobin', nodes: arrayOf(pods) })
    rig.put('upstreams', 'web', byHand([old, fresh]))
    const added = rig.pod('web-3')
    await rig.serve(added)
    rig.service('web', [old, fresh, added])
    await rig.settled()
    await until('the agent knows', () => rig.agent.holder('upstreams/web')?.owner === 'unknown')
    let once = true
    rig.admin.listener.server.on('request', ({ method }) => {
      if (method !== 'PATCH' || !once) return
      once = false
      rig.put('upstreams', 'web', byHand([old, fresh, added]))
    })
    expect((await rig.drain(old)).body).to.include({ result: 'drained' })
    expect(once, 'it came in between').to.equal(false)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.overwritten()).to.deep.equal([added.node])
    rig.put('upstreams', 'web', byHand([fresh, added]))
    await until('the agent knows', () => rig.agent.nodes('upstreams/web') === 2)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node, added.node])
  })

  test('controller 2.x: one pod in dozens of upstreams, one of them with a stale inline copy', async start => {
    const rig = await start({ barrier: false })
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.service('web', [old, fresh])
    const ids = Array.from({ length: 40 }, (_, i) => crc32(`shop_web_${i}`).toString(16))
    const nodes = { [old.node]: 1, [fresh.node]: 1 }
    for (const id of ids) {
      // The upstreams of both versions have this label. Only the service with the same id shows that 2.x wrote them.
      rig.put('upstreams', id, { type: 'roundrobin', ...FIRST, nodes })
      rig.put('services', id, { upstream_id: id, ...SECOND })
    }
    const stale = ids[0] ?? ''
    rig.put('services', stale, { upstream_id: stale, ...SECOND, upstream: { type: 'roundrobin', nodes } })
    await rig.settled()
    await until('the inventory has them', () => ids.every(id => rig.agent.nodes(`upstreams/${id}`) === 2))
    await until('and the copy', () => rig.agent.nodes(`services/${stale}/upstream`) === 2)
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'observed' })
    await until(
      'it is out of all of them',
      () => Object.values(rig.holders()).every(listed => !listed.includes(old.node)),
      20_000
    )
    rig.put('upstreams', stale, { type: 'roundrobin', ...FIRST, nodes })
    await until('who put it back is named', () =>
      putBacks(rig).some(({ owner }) => owner === 'ingress-controller-2')
    )
  })
})
