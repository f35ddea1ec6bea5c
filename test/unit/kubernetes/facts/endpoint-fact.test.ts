import { expect } from 'chai'
import * as fc from 'fast-check'
import { toEndpointFact } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { sliceObject } from './objects.ts'

const conditionsOf = (conditions: unknown) => {
  const [endpoint] = toEndpointFact(
    sliceObject('s', { endpoints: [{ addresses: ['10.0.0.1'], conditions }] })
  )!.endpoints
  return [endpoint!.ready, endpoint!.serving, endpoint!.terminating]
}

describe('watch: an EndpointSlice becomes a fact', () => {
  it('maps addresses to pods and ports', () => {
    expect(toEndpointFact(sliceObject('web-abc'))).to.deep.equal({
      uid: 'uid-web-abc',
      namespace: 'shop',
      name: 'web-abc',
      service: 'web',
      family: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [
        { address: '10.0.0.1', podUid: 'uid-web-1', ready: true, serving: true, terminating: false }
      ]
    })
  })

  it('reads absent conditions as the API defines them', () => {
    expect(conditionsOf(undefined)).to.deep.equal([true, true, false])
    expect(conditionsOf({ ready: false })).to.deep.equal([false, false, false])
    expect(conditionsOf({ ready: false, serving: true, terminating: true })).to.deep.equal([
      false,
      true,
      true
    ])
    expect(conditionsOf({ ready: null, serving: null, terminating: null })).to.deep.equal([true, true, false])
  })

  it('reads a pod that stays ready while it ends (publishNotReadyAddresses)', () => {
    expect(conditionsOf({ ready: true, serving: true, terminating: true })).to.deep.equal([true, true, true])
  })

  it('reads a port without a number as all ports, and no ports as none', () => {
    expect(toEndpointFact(sliceObject('s', { ports: [{ name: '' }] }))?.ports).to.deep.equal([
      { name: '', port: undefined }
    ])
    expect(toEndpointFact(sliceObject('s', { ports: undefined }))?.ports).to.deep.equal([])
  })

  it('keeps slices of any address family, without a Service, and without pods', () => {
    const fact = toEndpointFact({
      metadata: { uid: 'u', name: 'n', namespace: 'ns' },
      addressType: 'FQDN',
      endpoints: [
        { addresses: ['db.example'], targetRef: { kind: 'Node', uid: 'x' } },
        { addresses: [] },
        null
      ]
    })
    expect(fact).to.include({ service: '', family: 'FQDN' })
    expect(fact?.endpoints).to.deep.equal([
      { address: 'db.example', podUid: undefined, ready: true, serving: true, terminating: false }
    ])
    expect(toEndpointFact({ metadata: { name: 'n', namespace: 'ns' } })).to.equal(undefined)
  })

  it('never throws and is idempotent, for any input', () => {
    const anything = fc.anything({ maxDepth: 3 })
    const slices = fc.record({
      metadata: fc.constant({ uid: 'u', name: 'n', namespace: 'ns' }),
      ports: anything,
      endpoints: fc.oneof(anything, fc.array(fc.record({ addresses: anything, conditions: anything })))
    })
    fc.assert(
      fc.property(fc.oneof(anything, slices), object => {
        expect(toEndpointFact(object)).to.deep.equal(toEndpointFact(object))
      }),
      { numRuns: 300 }
    )
  })
})
