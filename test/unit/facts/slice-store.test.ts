import { expect } from 'chai'
import type { Endpoint, EndpointFact, PodUid } from '../../../agent/drain/facts.ts'
import { createSliceStore } from '../../../agent/facts/slice-store.ts'

const uid = (text: string) => text as PodUid
const endpoint = (podUid: string | undefined, differs: Partial<Endpoint> = {}): Endpoint => ({
  address: '10.0.0.1',
  podUid: podUid as PodUid | undefined,
  ready: true,
  serving: true,
  terminating: false,
  ...differs
})
const slice = (name: string, differs: Partial<EndpointFact> = {}): EndpointFact => ({
  uid: `uid-${name}`,
  namespace: 'shop',
  name,
  service: 'web',
  family: 'IPv4',
  ports: [{ name: 'http', port: 8080 }],
  endpoints: [endpoint('p1')],
  ...differs
})

describe('watch: the slice store', () => {
  it('says whether anything changed', () => {
    const { sink } = createSliceStore()
    expect(sink.set(slice('a'))).to.equal(true)
    expect(sink.set(slice('a'))).to.equal(false)
    expect(sink.set(slice('a', { endpoints: [] }))).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(false)
  })

  it('is a witness: terminating in one slice is enough', () => {
    const { store, sink } = createSliceStore()
    sink.set(slice('a'))
    sink.set(
      slice('b', { family: 'IPv6', endpoints: [endpoint('p1', { address: 'fd00::1' }), endpoint('p2')] })
    )
    expect(store.terminating(uid('p1'), 'shop')).to.equal(false)
    sink.set(
      slice('b', { family: 'IPv6', endpoints: [endpoint('p1', { terminating: true }), endpoint('p2')] })
    )
    expect(store.terminating(uid('p1'), 'shop')).to.equal(true)
    expect(store.terminating(uid('p2'), 'shop')).to.equal(false)
    expect(store.terminating(uid('unknown'), 'shop')).to.equal(false)
  })

  it('is no witness about pods of another namespace: whoever may write slices there could take any pod out', () => {
    const { store, sink } = createSliceStore()
    sink.set(slice('forged', { namespace: 'other', endpoints: [endpoint('p1', { terminating: true })] }))
    expect(store.terminating(uid('p1'), 'shop')).to.equal(false)
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
    expect(store.portsOf(uid('p1'))).to.deep.equal([8081, 9090])
    expect(store.servicesOf(uid('p1'))).to.deep.equal([
      { namespace: 'shop', name: 'web' },
      { namespace: 'shop', name: 'admin' }
    ])
    sink.gone('uid-b', undefined)
    expect(store.portsOf(uid('p1'))).to.deep.equal([9090])
    expect(store.servicesOf(uid('unknown'))).to.deep.equal([])
    expect(store.size).to.equal(2)
  })

  it('counts what serves once, although it may be in two slices for a moment', () => {
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
