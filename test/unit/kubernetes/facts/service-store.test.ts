import { expect } from 'chai'
import { toServiceFact, createServiceStore } from '../../../../agent/kubernetes/facts/service-store.ts'
import type { EndpointFact, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { createSliceStore } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { endpoint, slice as sliceWith } from '../../../build/service.ts'

const object = (annotations: Record<string, string>) => ({
  metadata: { uid: 'u1', namespace: 'shop', name: 'web', annotations },
  spec: { ports: [{ name: 'http', port: 80 }] }
})

describe('watch: services', () => {
  it('are found by their name, and by that for which they stand', () => {
    const alias = toServiceFact({
      ...object({}),
      spec: { type: 'ExternalName', externalName: 'web.shop.svc' }
    })
    const { store, sink } = createServiceStore()
    sink.set(alias!)
    expect(store.aliasesTo('web.shop')).to.deep.equal([alias])
    expect(store.byName('shop', 'web')).to.equal(alias)
    sink.gone('u1', undefined)
    expect(store.aliasesTo('web.shop')).to.deep.equal([])
    expect(store.byName('shop', 'web')).to.equal(undefined)
    expect(toServiceFact(null)).to.equal(undefined)
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

const of = (text: string) => ({ uid: text as PodUid, namespace: 'shop' })
const slice = (name: string, { endpoints = [endpoint('p1')], ...differs }: Partial<EndpointFact> = {}) =>
  sliceWith(name, endpoints, differs)

describe('watch: the slice store', () => {
  it('reports whether anything changed', () => {
    const { sink } = createSliceStore()
    expect(sink.set(slice('a'))).to.equal(true)
    expect(sink.set(slice('a'))).to.equal(false)
    expect(sink.set(slice('a', { endpoints: [] }))).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(false)
  })

  it('ignores slices about pods of another namespace: their author could forge their ends, ports and Services', () => {
    const { store, sink } = createSliceStore()
    sink.set(slice('forged', { namespace: 'other', endpoints: [endpoint('p1', { terminating: true })] }))
    expect(store.portsOf(of('p1'))).to.deep.equal([])
    expect(store.servicesOf(of('p1'))).to.deep.equal([])
    expect(store.listing(of('p1'))).to.deep.equal([])
    sink.set(slice('forged', { namespace: 'other', endpoints: [] }))
    expect(store.listing(of('p1'))).to.deep.equal([])
  })

  it('keeps the last slices of at most 32 Services of one pod', () => {
    const { store, sink } = createSliceStore()
    for (let i = 0; i < 100; i++) {
      sink.set(slice(`s${i}`, { service: `s${i}` }))
      sink.gone(`uid-s${i}`, undefined)
    }
    const names = store.listing(of('p1')).map(({ name }) => name)
    expect([names.length, names.at(-1)]).to.deep.equal([32, 's99'])
  })

  it('resolves the ports and Services of a pod over all its slices', () => {
    const { store, sink } = createSliceStore()
    sink.set(slice('a', { ports: [{ name: 'b', port: 9090 }] }))
    sink.set(
      slice('b', {
        service: 'admin',
        ports: [
          { name: 'x', port: 8081 },
          { name: '', port: undefined }
        ]
      })
    )
    sink.set(slice('c', { service: '', ports: [{ name: 'y', port: 9090 }] }))
    expect(store.portsOf(of('p1'))).to.deep.equal([8081, 9090])
    expect(store.servicesOf(of('p1'))).to.deep.equal([
      { namespace: 'shop', name: 'web' },
      { namespace: 'shop', name: 'admin' }
    ])
    sink.gone('uid-b', undefined)
    expect(store.portsOf(of('p1'))).to.deep.equal([9090])
    expect(store.servicesOf(of('unknown'))).to.deep.equal([])
    expect(store.size).to.equal(2)
  })

  it('keeps the last slices of a pod that Services have dropped, each until that Service lists it again', () => {
    const { store, sink } = createSliceStore()
    const [web, stable] = [slice('a'), slice('b', { service: 'web-stable' })]
    for (const one of [web, stable]) sink.set(one)
    expect(store.listing(of('p1'))).to.have.members([web, stable])
    sink.set(slice('a', { endpoints: [endpoint('p2')] }))
    expect(store.listing(of('p1'))).to.have.members([web, stable])
    sink.gone('uid-b', undefined)
    expect(store.listing(of('p1'))).to.have.members([web, stable])
    expect(store.servicesOf(of('p1'))).to.deep.equal([])
    const again = slice('a', { ports: [{ name: 'http', port: 9090 }] })
    sink.set(again)
    expect(store.listing(of('p1'))).to.have.members([again, stable])
  })

  it('forgets the oldest of many pods that Services have dropped', () => {
    const { store, sink } = createSliceStore()
    const pods = Array.from({ length: 2500 }, (_, i) => `p${i}`)
    sink.set(slice('a', { endpoints: pods.map(pod => endpoint(pod)) }))
    sink.set(slice('a', { endpoints: [] }))
    expect(pods.filter(pod => store.listing(of(pod)).length > 0)).to.deep.equal(pods.slice(500))
  })

  it('counts a serving pod once, even while it is in two slices', () => {
    const { store, sink } = createSliceStore()
    sink.set(
      slice('a', { endpoints: [endpoint('p1'), endpoint('p2', { address: '10.0.0.2', serving: false })] })
    )
    sink.set(
      slice('b', { endpoints: [endpoint('p1'), endpoint('p3', { address: '10.0.0.3', terminating: true })] })
    )
    sink.set(slice('other', { service: 'admin', endpoints: [endpoint('p9', { address: '10.0.0.9' })] }))
    expect(store.serving('shop', 'web').map(e => e.podUid)).to.deep.equal(['p1', 'p3'])
    expect(store.serving('shop', 'nothing')).to.deep.equal([])
  })
})
