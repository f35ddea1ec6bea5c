import { expect } from 'chai'
import * as fc from 'fast-check'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { toEndpointFact } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { pod } from '../../../build/pod.ts'
import { isOver, saysThatItEnds } from '../../../../agent/rules/drain/eligible.ts'

describe('watch: a pod becomes a fact', () => {
  it('never throws, is idempotent and does not change the object, for any input', () => {
    const anything = fc.anything({ maxDepth: 3 })
    const pods = fc
      .record({ deletionTimestamp: anything, annotations: anything, ownerReferences: anything })
      .chain(metadata =>
        fc
          .record({ spec: fc.record({ containers: anything, hostNetwork: anything }), status: anything })
          .map(({ spec, status }) => ({
            metadata: { uid: 'u', name: 'n', namespace: 'ns', ...metadata },
            spec,
            status
          }))
      )
    fc.assert(
      fc.property(fc.oneof(anything, pods), object => {
        const before = structuredClone(object)
        const once = toPodFact(object)
        expect(toPodFact(object)).to.deep.equal(once)
        expect(object).to.deep.equal(before)
      }),
      { numRuns: 300 }
    )
  })

  it('distinguishes pods that are ending from pods that have ended', () => {
    expect(saysThatItEnds(pod('a'))).to.equal(false)
    expect(saysThatItEnds(pod('a', { deletionAt: 1 }))).to.equal(true)
    expect(saysThatItEnds(pod('a', { phase: 'Failed' }))).to.equal(true)
    expect(isOver(pod('a', { deletionAt: 1 }))).to.equal(false)
    expect(isOver(pod('a', { phase: 'Succeeded' }))).to.equal(true)
  })
})

describe('watch: an EndpointSlice becomes a fact', () => {
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
