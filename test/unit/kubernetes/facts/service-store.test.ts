import { expect } from 'chai'
import { toServiceFact, createServiceStore } from '../../../../agent/kubernetes/facts/service-store.ts'

const object = (annotations: Record<string, string>) => ({
  metadata: {
    creationTimestamp: '2026-01-02T00:00:00Z',
    uid: 'u1',
    namespace: 'shop',
    name: 'web',
    annotations
  },
  spec: { ports: [{ name: 'http', port: 80 }, { port: 81 }, { name: 'broken', port: 'x' }] }
})

describe('watch: services', () => {
  it('are shrunk to their ports and our annotations', () => {
    expect(toServiceFact(object({ 'apisix-drain.io/upstream': 'web', other: 'x' }))).to.deep.equal({
      uid: 'u1',
      namespace: 'shop',
      name: 'web',
      createdAt: Date.UTC(2026, 0, 2),
      ports: [
        { name: 'http', port: 80 },
        { name: '', port: 81 }
      ],
      clusterIps: [],
      external: [],
      nodePorts: [],
      externalName: undefined,
      annotations: { 'apisix-drain.io/upstream': 'web' }
    })
    expect(toServiceFact({ metadata: {} })).to.equal(undefined)
    expect(toServiceFact(null)).to.equal(undefined)
  })

  it('keep every address and name that leads to their pods', () => {
    const { metadata } = object({})
    const spec = {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.12',
      clusterIPs: ['10.96.0.12', 'fd00::12'],
      externalIPs: ['192.0.2.1'],
      ports: [{ port: 80, nodePort: 30080 }, { port: 81 }]
    }
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.2' }, { hostname: 'lb.example.com' }] } }
    expect(toServiceFact({ metadata, spec, status })).to.deep.include({
      clusterIps: ['10.96.0.12', 'fd00::12'],
      external: ['192.0.2.1', '192.0.2.2', 'lb.example.com'],
      nodePorts: [30080],
      externalName: undefined
    })
    expect(toServiceFact({ metadata, spec: { clusterIP: 'None' } })?.clusterIps).to.deep.equal([])
    expect(toServiceFact({ metadata, spec: { clusterIP: '10.96.0.13' } })?.clusterIps).to.deep.equal([
      '10.96.0.13'
    ])
    const outer = { type: 'ExternalName', externalName: 'web.shop.svc' }
    const alias = toServiceFact({ metadata, spec: outer })
    expect(alias?.externalName).to.equal('web.shop.svc')
    const { store, sink } = createServiceStore()
    sink.set(alias!)
    expect(store.aliasesTo('path/shop/web')).to.deep.equal([alias])
    expect(store.byName('shop', 'web')).to.equal(alias)
    sink.gone('u1', undefined)
    expect(store.aliasesTo('path/shop/web')).to.deep.equal([])
    expect(store.byName('shop', 'web')).to.equal(undefined)
  })

  it('are listed if their annotations make a claim; the list stays the same until one changes', () => {
    const { store, sink } = createServiceStore()
    const asks = toServiceFact(object({ 'apisix-drain.io/upstream': 'web' }))!
    const asksNothing = toServiceFact(object({ other: 'x' }))!
    expect(sink.set(asksNothing)).to.equal(true)
    expect(store.asking()).to.deep.equal([])
    expect(sink.set(asks)).to.equal(true)
    const list = store.asking()
    expect(sink.set({ ...asks })).to.equal(false)
    expect(store.asking()).to.equal(list)
    expect(sink.set(asksNothing), 'the annotation was taken away').to.equal(true)
    expect(store.asking()).to.deep.equal([])
    sink.set(asks)
    expect(sink.gone('u1', undefined)).to.equal(true)
    expect(sink.gone('u1', undefined)).to.equal(false)
  })
})
