import { isDeepStrictEqual } from 'node:util'

import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { get } from '../build/load.ts'
import { pair } from '../build/pair.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: holders', () => {
  const test = sideBySide()

  test('nodes without port and IPv6 nodes leave; discovery and domain names are left alone', async start => {
    const rig = await start()
    const old = rig.pod('web-1', { ipv6: 'fd00::7' })
    const fresh = rig.pod('web-2')
    rig.put('upstreams', 'six', { nodes: { '[fd00::7]:8080': 1, [fresh.node]: 1 } })
    rig.put('upstreams', 'six-list', {
      nodes: [
        { host: '[fd00::7]', port: 8080, weight: 1 },
        { host: fresh.ip, port: fresh.port, weight: 1 }
      ]
    })
    rig.put('upstreams', 'bare', { nodes: { [old.ip]: 1, [fresh.ip]: 1 } })
    rig.put('upstreams', 'mixed', { nodes: { 'shop.example:80': 1, [old.node]: 1 } })
    const found = { type: 'roundrobin', discovery_type: 'kubernetes', service_name: 'shop/web:http' }
    rig.put('upstreams', 'found', found)
    await rig.settled()
    rig.end(old)
    await until('it is out', () =>
      isDeepStrictEqual(rig.holders(), {
        'upstreams/six': [fresh.node],
        'upstreams/six-list': [fresh.node],
        'upstreams/bare': [fresh.ip],
        'upstreams/mixed': ['shop.example:80']
      })
    )
    expect(rig.apisix.store.get('/apisix/upstreams/found')?.value).to.deep.equal({ id: 'found', ...found })
  })

  for (const ranges of ['', '127.0.0.0/8'])
    test(`an address in a pod range that no known pod has takes over no requests${ranges && ': by its range'}`, async start => {
      const rig = await start({ barrier: true, config: { ...(ranges && { SYNC_POD_RANGES: ranges }) } })
      const old = rig.pod('web-1')
      await rig.serve(old)
      const ghost = `${old.ip.replace(/\d+$/, '254')}:${old.port}`
      rig.put('upstreams', 'web', { nodes: { [ghost]: 1, [old.node]: 1 } })
      await rig.settled('web', 2)
      const hook = rig.drain(old)
      await until('it is kept as the last one', () =>
        rig.agent.loop.lastPlan().kept.some(({ why }) => why === 'last-node')
      )
      expect(rig.gateways[0]!.barrier?.entries.look(old.ip, old.port)).to.not.equal('sealed')
      const fresh = rig.pod('web-2')
      rig.put('upstreams', 'web', { nodes: { [ghost]: 1, [old.node]: 1, [fresh.node]: 1 } })
      expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    })

  test('a node that its owner puts back right before the pod is gone does not stay as a ghost', async start => {
    // The guard runs so rarely that it lists no holders during this test.
    const rig = await start({ loop: { guardEveryMs: 60_000 } })
    const [old, fresh] = await pair(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained' })
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    rig.upstream('web', [old, fresh])
    rig.gone(old)
    await until('it is out again', () => rig.nodes('upstreams/web').length === 1)
  })
})

describe('feature: the last node', () => {
  const test = sideBySide()

  test('stays listed, and only the plugin keeps requests away: the 503 comes at once; it is removed when its replacement comes', async start => {
    const rig = await start()
    const old = rig.pod('web-1')
    rig.upstream('web', [old])
    await rig.settled()
    const { status, body, ranMs } = await rig.drain(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved' })
    expect(body.why).to.contain('no other node of this holder serves')
    expect(ranMs).to.be.below(1000)
    expect(rig.nodes('upstreams/web')).to.deep.equal([old.node])
    const fresh = rig.pod('web-2')
    rig.upstream('web', [old, fresh])
    await until('it is out', () => rig.nodes('upstreams/web').join() === fresh.node)
  })
})

describe('feature: an address that is given out again', () => {
  const test = sideBySide({ barrier: true })

  test('belongs to the new pod at once: its node stays, requests reach it, the entry is lifted', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await until('its node is out', () => rig.nodes('upstreams/web').length === 1)
    rig.gone(old)
    const heir = rig.pod('web-3', { ip: old.ip })
    const backend = await rig.serve(heir)
    rig.upstream('web', [heir])
    const [gateway] = rig.gateways
    await until('the entry is lifted', () => gateway!.barrier?.entries.size === 0)
    await rig.settled()
    expect(await get(`${gateway!.urls.proxy}/`)).to.deep.equal({ status: 200, body: 'web-3' })
    expect(backend.arrivals).to.have.length(1)
    expect(rig.nodes('upstreams/web')).to.deep.equal([heir.node])
  })

  test('belongs to the new pod even while the old pod’s object exists', async start => {
    const rig = await start()
    const [old, other] = await pair(rig)
    await rig.drain(old)
    await until('its node is out', () => rig.nodes('upstreams/web').length === 1)
    const heir = rig.pod('web-3', { ip: old.ip })
    rig.upstream('web', [heir, other])
    await until('the entry is lifted', () => rig.gateways[0]!.barrier?.entries.size === 0)
    // Waits until the guard has read the holders again. It must have removed nothing.
    const written = rig.writes.length
    const readAt = rig.agent.readAt()
    await until('the holders were read again', () => (rig.agent.readAt() ?? 0) > (readAt ?? 0))
    expect(rig.writes).to.have.length(written)
    expect([...rig.nodes('upstreams/web')].toSorted()).to.deep.equal([heir.node, other.node].toSorted())
  })
})
