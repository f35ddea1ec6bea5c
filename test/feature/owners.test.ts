import { expect } from 'chai'
import { crc32 } from 'node:zlib'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const FIRST = { labels: { 'managed-by': 'apisix-ingress-controller' } }
const SECOND = { labels: { 'manager-by': 'apisix-ingress-controller', 'k8s/name': 'web' } }
const DEFER_MS = 600

const owned = (pods: readonly TestPod[]) => ({ type: 'roundrobin', ...FIRST, nodes: arrayOf(pods) })

/** Makes two pods with real servers behind one upstream of ingress controller 1.8, with a route and load. */
async function web(rig: Rig) {
  const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
  await Promise.all([rig.serve(old), rig.serve(fresh)])
  rig.service('web', [old, fresh])
  rig.admin.listener.server.on('request', ({ method, url }) => {
    if (method === 'GET' && url === '/apisix/admin/upstreams/web') reading.set(rig, reads(rig) + 1)
  })
  rig.put('upstreams', 'web', owned([old, fresh]))
  rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
  await rig.settled()
  await until('the inventory has it', () => rig.agent.nodes('upstreams/web') === 2)
  return {
    old,
    fresh,
    since: () => [...rig.agent.loop.drains().values()].find(({ pod }) => pod.name === old.name)?.since ?? 0
  }
}

const PATCH = 'PATCH /apisix/admin/upstreams/web'
const reads = (rig: Rig) => reading.get(rig) ?? 0
const reading = new WeakMap<Rig, number>()
const putBacks = (rig: Rig) => rig.agent.lines.filter(({ msg }) => msg === 'node put back')

describe('feature: holders that another writer changes', () => {
  const test = sideBySide({ barrier: true, config: { DRAIN_DEFER_WRITES: `${DEFER_MS}ms` } })

  test('with the plugin the owner removes first, and the agent writes nothing', async start => {
    const rig = await start()
    const { old, fresh, since } = await web(rig)
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    rig.put('upstreams', 'web', owned([fresh]))
    await until('the agent knows', () => rig.agent.nodes('upstreams/web') === 1)
    await until('its turn has come and gone', () => Date.now() > since() + DEFER_MS + 300)
    expect(rig.writes).to.deep.equal([])
  })

  test('a node that the owner leaves in a map is removed when the owner’s time is over; only a timer wakes the agent for it', async start => {
    const rig = await start()
    const { old, fresh } = await web(rig)
    rig.put('upstreams', 'web', { ...owned([]), nodes: { [old.node]: 1, [fresh.node]: 1 } })
    await rig.settled()
    await until('the agent knows', () => rig.agent.holder('upstreams/web')?.form === 'map')
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(rig.writes, 'not before').to.deep.equal([])
    await until('it is taken out', () => rig.nodes('upstreams/web').length === 1)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.writes).to.deep.equal(['PATCH /apisix/admin/upstreams/web'])
  })

  test('a node that the owner leaves in a list is removed when the pod is gone: until then the barrier holds, and only the owner writes the list', async start => {
    const rig = await start()
    const { old, fresh, since } = await web(rig)
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await until('the time of the owner is over', () => Date.now() > since() + DEFER_MS + 300)
    expect(rig.writes, 'not before').to.deep.equal([])
    rig.gone(old)
    await until('it is taken out', () => rig.nodes('upstreams/web').length === 1)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.writes).to.deep.equal([PATCH])
  })

  test('two pods that end with no other node: a node that can never be sealed is removed when the owner’s time is over', async start => {
    const rig = await start()
    const { old, fresh } = await web(rig)
    rig.end(old)
    rig.end(fresh)
    const hooks = [rig.hook(old), rig.hook(fresh)]
    const { body } = await Promise.race(hooks)
    expect(body).to.include({ evidence: 'barrier' })
    expect(rig.nodes('upstreams/web')).to.have.length(1)
    rig.put('upstreams', 'web', owned([]))
    await Promise.all(hooks)
  })

  test('without the plugin the owner also goes first, and the agent writes nothing if the owner is alive', async start => {
    const rig = await start({ barrier: false, config: { DRAIN_DEFER_WRITES: '20s' } })
    const { old, fresh } = await web(rig)
    rig.end(old)
    const hook = rig.hook(old)
    await until('it is looked at', () => reads(rig) > 0)
    rig.put('upstreams', 'web', owned([fresh]))
    expect((await hook).body).to.include({ result: 'removed', evidence: 'observed' })
    expect(rig.writes).to.deep.equal([])
  })

  test('without the plugin an idle owner is given one second', async start => {
    const rig = await start({ barrier: false, config: { DRAIN_DEFER_WRITES: '20s' } })
    const { old, since } = await web(rig)
    rig.end(old)
    await until('it is written', () => rig.writes.length > 0)
    expect(Date.now() - since()).to.be.at.least(1000)
    expect((await rig.hook(old)).body).to.include({ result: 'removed', evidence: 'observed' })
    expect(rig.writes).to.deep.equal([PATCH])
    expect(rig.agent.loop.lastPlan().kept).to.deep.equal([])
  })

  test('a barrier that does not answer does not count: the holder is written at once', async start => {
    const rig = await start({ config: { DRAIN_DEFER_WRITES: '20s', APISIX_BARRIER_TIMEOUT: '100ms' } })
    const { old } = await web(rig)
    await rig.gateways[0]?.partition({ barrier: 'refused' })
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'removed', evidence: 'observed' })
  })

  for (const form of ['map', 'list'] as const)
    test(`a writer that puts an old view back every 200 ms, as a ${form}: no request reaches the pod${form === 'map' ? ', and the writer is named' : ', and the agent writes nothing before the pod is gone'}`, async start => {
      const rig = await start({ config: { DRAIN_DEFER_WRITES: '0s' } })
      const { old, fresh } = await web(rig)
      const nodes = form === 'map' ? { [old.node]: 1, [fresh.node]: 1 } : arrayOf([old, fresh])
      let views = 0
      const putBack = () => {
        views += 1
        rig.put('upstreams', 'web', { ...owned([]), nodes })
      }
      putBack()
      await until(
        'the agent knows',
        () => rig.agent.holder('upstreams/web')?.form !== (form === 'map' ? 'array' : 'map')
      )
      const load = rig.load(100)
      const writer = setInterval(putBack, 200)
      try {
        rig.end(old)
        expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
        const before = views
        if (form === 'map')
          await until('it was put back and taken out again', () => putBacks(rig).length >= 2, 15_000)
        else await until('it was put back', () => views >= before + 10, 15_000)
      } finally {
        clearInterval(writer)
      }
      if (form === 'map')
        expect(putBacks(rig)[0]).to.include({
          holder: 'upstreams/web',
          node: old.node,
          writer: 'ingress controller 1.x (its label managed-by)'
        })
      else expect(rig.writes).to.deep.equal([])
      // The rig checks at the end of each test that no request arrived after the answer.
      rig.gone(old)
      await until('it is out for good', () => rig.nodes('upstreams/web').length === 1)
      await load.stop()
    })

  test('a PUT in the middle of our edit: its author must write the added node again, and the agent adds nothing for it', async start => {
    const rig = await start({ barrier: false, config: { DRAIN_DEFER_WRITES: '0s' } })
    const { old, fresh } = await web(rig)
    const added = rig.pod('web-3')
    await rig.serve(added)
    rig.service('web', [old, fresh, added])
    await rig.settled()
    let once = true
    rig.admin.listener.server.on('request', ({ method }) => {
      if (method !== 'PATCH' || !once) return
      once = false
      rig.put('upstreams', 'web', owned([old, fresh, added]))
    })
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'removed' })
    expect(once, 'it came in between').to.equal(false)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.overwritten()).to.deep.equal([added.node])
    rig.put('upstreams', 'web', owned([fresh, added]))
    await until('the agent knows', () => rig.agent.nodes('upstreams/web') === 2)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node, added.node])
  })

  test('controller 2.x: one pod in dozens of upstreams, one of them with a stale inline copy', async start => {
    const rig = await start()
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
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await until(
      'it is out of all of them',
      () => Object.values(rig.holders()).every(listed => !listed.includes(old.node)),
      20_000
    )
    rig.put('upstreams', stale, { type: 'roundrobin', ...FIRST, nodes })
    await until('who put it back is named', () =>
      putBacks(rig).some(({ writer }) =>
        String(writer).startsWith('ingress controller 2.x (the service of the same id')
      )
    )
  })
})
