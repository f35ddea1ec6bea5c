import { expect } from 'chai'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import type { ServiceFact } from '../../../../agent/rules/drain/facts.ts'
import { SYNCED_FOR } from '../../../../agent/rules/members/node-mark.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { createSync } from '../../../../agent/upkeep/sync/sync.ts'
import { asking, serviceFact } from '../../../build/service.ts'

const service = (name: string, upstream: string, differs: Partial<ServiceFact> = {}): ServiceFact =>
  serviceFact(name, { uid: name, annotations: asking({ upstream }), ...differs })

/** An upstream with a node of this Service. */
function marked(id: string, mark?: string): Holder {
  const node = { host: '10.0.0.1', port: 80, weight: 1, ...(mark && { metadata: { [SYNCED_FOR]: mark } }) }
  return holdersOf({ resource: 'upstreams', id, value: { nodes: [node] }, revision: 1 })[0]!
}

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
    told: ({ name }, why) => told.push(`${name}: ${why}`)
  })
  const settle = () => (sync.targets(0), told.splice(0))
  return { settle, state, sync }
}

describe('the claims of Services', () => {
  const [thief, web] = [service('thief', 'a', { createdAt: 1 }), service('web', 'a', { createdAt: 5 })]
  const follows = (name: string, other: string) =>
    `${name}: upstreams/a follows shop/${other}: this claim changes nothing`

  it('of another namespace do not count, however old, unless sync.allow lists them', () => {
    const old = { namespace: 'b', createdAt: -1 }
    const services = [web, service('thief', 'a', old), service('own', 'b-1', old)]
    const { settle, sync } = claiming(services, [marked('a'), marked('b-1')])
    expect(settle()).eql(['thief: sync.allow does not let namespace b fill upstreams/a'])
    expect(sync.counts()).eql({ holders: 2, problems: 1 })
  })

  it('are kept by the first Service, whatever the age of a later one, until it asks no more', () => {
    const { settle, state } = claiming([web], [marked('a')])
    expect(settle()).eql([])
    state.services = [thief, web]
    expect(settle()).eql([follows('thief', 'web')])
    state.services = [thief]
    expect(settle()).eql(['thief: undefined'])
  })

  it('after a start are kept by the Service that the nodes are marked with, otherwise by the oldest', () => {
    expect(claiming([thief, web], [marked('a', 'shop/web')]).settle()).eql([follows('thief', 'web')])
    expect(claiming([web, thief], [marked('a')]).settle()).eql([follows('web', 'thief')])
    const sameAge = [service('b', 'a'), service('a', 'a')]
    expect(claiming(sameAge, [marked('a')]).settle()).eql([follows('b', 'a')])
  })

  it('are settled again once the holders are read: what was guessed before does not bind', () => {
    const { settle, state } = claiming([thief, web], undefined)
    expect(settle()).eql([follows('web', 'thief')])
    state.upstreams = [marked('a', 'shop/web')]
    expect(settle()).eql([follows('thief', 'web'), 'web: undefined'])
  })

  it('have each problem reported once, until its text changes, and its end reported too', () => {
    const { settle, state } = claiming([web], [])
    expect(settle()).eql(['web: upstreams/a does not exist: make it'])
    expect(settle()).eql([])
    state.upstreams = [{ ...marked('a'), owner: 'ingress-controller-2' }]
    expect(settle()).eql(['web: upstreams/a belongs to ingress-controller-2: it would be a fight'])
    state.upstreams = [marked('a')]
    expect(settle()).eql(['web: undefined'])
  })
})
