import { expect } from 'chai'
import * as fc from 'fast-check'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { toEndpointFact } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { readOptions } from '../../../../agent/rules/drain/annotations.ts'
import { toServiceFact } from '../../../../agent/kubernetes/facts/service-store.ts'
import { claimsOf, settleClaims } from '../../../../agent/rules/members/members.ts'
import { podObject } from './objects.ts'

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
})

/** The value of an annotation that is as long as Kubernetes allows. */
const LONG = 'a,'.repeat(125_000)
/** The longest allowed text of a log line or an Event that gives the reasons for a few annotations. */
const LINE = 2000

describe('an annotation of 250 kB', () => {
  it('of a pod is kept in part, counts as unreadable, and makes short lines', () => {
    const annotations = { 'apisix-drain.io/reserve': LONG, 'apisix-drain.io/long-lived-wait': LONG }
    const fact = toPodFact(podObject('web-1', { metadata: { annotations } }))
    expect(Object.values(fact?.annotations ?? {}).map(({ length }) => length)).to.deep.equal([1025, 1025])
    const { problems } = readOptions(fact?.annotations ?? {})
    expect(problems).to.have.length(2)
    expect(problems.join('; ').length).to.be.below(LINE)
  })

  it('or 100,000 labels, 20,000 ports or 5,000 endpoints are kept in part too', () => {
    const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, 'v']))
    const ports = Array.from({ length: 20_000 }, (_, i) => ({
      name: `p${i}`,
      port: i + 1,
      containerPort: i + 1
    }))
    const fact = toPodFact(podObject('web-1', { metadata: { labels }, spec: { containers: [{ ports }] } }))
    expect(fact?.labelKey).to.have.length(64)
    expect(fact?.containerPorts).to.have.length(251)
    const endpoints = Array.from({ length: 5000 }, () => ({ addresses: ['10.0.0.1'] }))
    const slice = toEndpointFact({ metadata: { uid: 'u', namespace: 'shop', name: 'web' }, ports, endpoints })
    expect([slice?.ports.length, slice?.endpoints.length]).to.deep.equal([251, 1000])
  })

  it('of a Service too', () => {
    const annotations = { 'apisix-drain.io/upstream': LONG }
    const metadata = { uid: 'u', namespace: 'shop', name: 'web', annotations }
    const fact = toServiceFact({ metadata, spec: { ports: [{ name: 'http', port: 80 }] } })
    if (!fact) throw new Error('it is a Service')
    expect(Object.values(fact.annotations).every(({ length }) => length === 1025)).to.equal(true)
    expect(claimsOf(fact).claims).to.deep.equal([])
    expect(claimsOf(fact).problems.join('; ').length).to.be.below(LINE)
  })

  it('with many short parts makes one short line', () => {
    const annotations = { 'apisix-drain.io/upstream': 'a b,'.repeat(250) }
    const metadata = { uid: 'u', namespace: 'shop', name: 'web', annotations }
    const fact = toServiceFact({ metadata, spec: { ports: [{ name: 'http', port: 80 }] } })
    if (!fact) throw new Error('it is a Service')
    const { problems } = settleClaims([fact], () => true)
    expect([...problems.values()].join().length).to.be.within(1, LINE)
  })
})
