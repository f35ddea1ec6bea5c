import { expect } from 'chai'
import { holdersOf } from '../../../agent/gateway/apisix/holders.ts'
import type { ServiceFact } from '../../../agent/rules/drain/facts.ts'
import type { Holder } from '../../../agent/rules/plan/holder.ts'
import { createSync } from '../../../agent/upkeep/sync.ts'
import { asking, serviceFact } from '../../build/service.ts'

const service = (name: string, upstream: string, differs: Partial<ServiceFact> = {}): ServiceFact =>
  serviceFact(name, { uid: name, annotations: asking({ upstream }), ...differs })

/** An upstream with one node. */
const upstream = (id: string): Holder =>
  holdersOf({ resource: 'upstreams', id, value: { nodes: { '10.0.0.1:80': 1 } }, revision: 1 })[0]!

/** Settles the claims of Services that the test sets, on upstreams that it sets (`undefined`: not read yet), and returns what was told. */
function claiming(services: readonly ServiceFact[], upstreams: readonly Holder[] | undefined) {
  const state = { services, upstreams }
  const told: string[] = []
  const sync = createSync({
    cluster: {
      services: { asking: () => state.services },
      slices: { of: () => [] },
      pods: { byIp: () => [] },
      parts: () => []
    } as never,
    inventory: {
      holders: () => new Map(state.upstreams?.map(one => [one.key, one])),
      readAt: () => state.upstreams && 1
    },
    drains: () => new Map(),
    asking: { refresh: () => Promise.resolve(true) },
    mayWrite: () => false,
    allow: ['shop/*', 'b/b-*'],
    isPodRange: () => false,
    report: ({ name }, why) => told.push(`${name}: ${why}`)
  })
  const settle = () => (sync.targets(0), told.splice(0))
  return { settle, state, sync }
}

describe('the claims of Services', () => {
  const [old, web] = [service('old', 'a', { createdAt: 1 }), service('web', 'a', { createdAt: 5 })]
  const follows = (name: string, other: string) =>
    `${name}: upstreams/a follows shop/${other}: this claim changes nothing`

  it('of another namespace do not count, however old, unless sync.allow lists them', () => {
    const older = { namespace: 'b', createdAt: -1 }
    const services = [web, service('thief', 'a', older), service('own', 'b-1', older)]
    const { settle, sync } = claiming(services, [upstream('a'), upstream('b-1')])
    expect(settle()).eql(['thief: sync.allow does not let namespace b fill upstreams/a'])
    expect(sync.counts()).eql({ holders: 2, problems: 1 })
  })

  it('are of the oldest Service, whoever asked first, until it asks no more; of equal ones, of the least uid', () => {
    const { settle, state } = claiming([web], [upstream('a')])
    expect(settle()).eql([])
    state.services = [web, old]
    expect(settle()).eql([follows('web', 'old')])
    state.services = [web]
    expect(settle()).eql(['web: undefined'])
    const sameAge = [service('b', 'a'), service('a', 'a')]
    expect(claiming(sameAge, [upstream('a')]).settle()).eql([follows('b', 'a')])
  })

  it('have each problem reported once, until its text changes, and its end reported too', () => {
    const { settle, state } = claiming([web], [])
    expect(settle()).eql(['web: upstreams/a does not exist: make it'])
    expect(settle()).eql([])
    state.upstreams = [{ ...upstream('a'), owner: 'ingress-controller-2' }]
    expect(settle()).eql(['web: upstreams/a belongs to ingress-controller-2: it would be a fight'])
    state.upstreams = [upstream('a')]
    expect(settle()).eql(['web: undefined'])
  })
})
