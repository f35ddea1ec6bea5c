import { expect } from 'chai'
import type { ServiceFact } from '../../../../agent/rules/drain/facts.ts'
import { allowedBy } from '../../../../agent/rules/members/allowed.ts'
import { createClaims } from '../../../../agent/upkeep/sync/claims.ts'
import { asking, serviceFact } from '../../../build/service.ts'

const service = (name: string, upstream: string, differs: Partial<ServiceFact> = {}): ServiceFact =>
  serviceFact(name, { uid: name, annotations: asking({ upstream }), ...differs })

/** Makes claims from a list of Services that the test sets, and from the marks in APISIX (`undefined`: not read yet). */
function claiming(
  services: readonly ServiceFact[],
  marks: Readonly<Record<string, string>> | undefined = {}
) {
  const state: { services: readonly ServiceFact[]; marks: Readonly<Record<string, string>> | undefined } = {
    services,
    marks
  }
  const told: [string, string | undefined][] = []
  const claims = createClaims({
    asking: () => state.services,
    allows: allowedBy(['shop/*', 'b/b-*']),
    marked: () => state.marks && (holder => new Set([state.marks?.[holder] ?? ''])),
    told: ({ name }, why) => told.push([name, why])
  })
  const kept = (holder: string) => claims.all().get(holder)?.service.name
  return { claims, state, told, kept }
}

describe('the claims of Services', () => {
  it('are read again only when a Service changed', () => {
    const { claims, state, kept } = claiming([service('web', 'a')])
    expect(claims.refresh()).equal(true)
    expect([...claims.all().keys()]).eql(['upstreams/a'])
    expect(claims.refresh()).equal(false)
    state.services = [service('api', 'a')]
    expect(kept('upstreams/a'), 'as before, until they are read').equal('web')
    expect(claims.refresh()).equal(true)
    expect(kept('upstreams/a')).equal('api')
    expect([...claims.problems().keys()]).eql([])
  })

  it('of another namespace do not count, however old, unless sync.allow lists them', () => {
    const old = { namespace: 'b', createdAt: -1 }
    const { claims, kept } = claiming([
      service('web', 'a', { createdAt: 5 }),
      service('thief', 'a', old),
      service('own', 'b-1', old)
    ])
    claims.refresh()
    expect(kept('upstreams/a')).equal('web')
    expect(kept('upstreams/b-1')).equal('own')
    expect([...claims.problems()]).eql([['b/thief', 'sync.allow does not let namespace b fill upstreams/a']])
  })

  it('are kept by the first Service, whatever the age of a later one', () => {
    const { claims, state, kept } = claiming([service('web', 'a', { createdAt: 5 })])
    claims.refresh()
    state.services = [service('thief', 'a', { createdAt: 1 }), service('web', 'a', { createdAt: 5 })]
    claims.refresh()
    expect(kept('upstreams/a')).equal('web')
    expect([...claims.problems()]).eql([
      ['shop/thief', 'upstreams/a follows shop/web: this claim changes nothing']
    ])
  })

  it('after a start are kept by the Service that the nodes are marked with, otherwise by the oldest', () => {
    const both = [service('thief', 'a', { createdAt: 1 }), service('web', 'a', { createdAt: 5 })]
    const marked = claiming(both, { 'upstreams/a': 'shop/web' })
    marked.claims.refresh()
    expect(marked.kept('upstreams/a')).equal('web')
    const unmarked = claiming(both.toReversed())
    unmarked.claims.refresh()
    expect(unmarked.kept('upstreams/a')).equal('thief')
    const sameAge = claiming([service('b', 'a'), service('a', 'a')])
    sameAge.claims.refresh()
    expect(sameAge.kept('upstreams/a')).equal('a')
  })

  it('are settled again once the holders are read: what was guessed before does not bind', () => {
    const { claims, state, kept } = claiming([
      service('thief', 'a', { createdAt: 1 }),
      service('web', 'a', { createdAt: 5 })
    ])
    state.marks = undefined
    claims.refresh()
    expect(kept('upstreams/a')).equal('thief')
    state.marks = { 'upstreams/a': 'shop/web' }
    expect(claims.refresh()).equal(true)
    expect(kept('upstreams/a')).equal('web')
    expect(claims.refresh()).equal(false)
  })

  it('have each problem reported once, until its text changes, and its end reported too', () => {
    const { claims, told } = claiming([service('web', 'a'), service('api', 'b')])
    const found = new Map([['shop/web', 'it does not exist']])
    claims.report(found)
    claims.report(found)
    expect(told).eql([['web', 'it does not exist']])
    expect(claims.reported()).eql(found)
    claims.report(new Map([['shop/web', 'it belongs to ADC']]))
    claims.report(new Map())
    expect(told.slice(1)).eql([
      ['web', 'it belongs to ADC'],
      ['web', undefined]
    ])
  })
})
