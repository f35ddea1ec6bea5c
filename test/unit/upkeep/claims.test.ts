import { expect } from 'chai'
import { holdersOf } from '../../../agent/gateway/apisix/holders.ts'
import type { ServiceFact, PodFact } from '../../../agent/rules/drain/facts.ts'
import type { Holder } from '../../../agent/rules/plan/holder.ts'
import { createSync } from '../../../agent/upkeep/sync.ts'
import { asking, serviceFact } from '../../build/service.ts'
import { pod } from '../../build/pod.ts'
import { createAsking } from '../../../agent/upkeep/upkeep.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { memoryLog } from '../../build/serve.ts'

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
    expect(['a', 'b-1', 'c'].map(id => sync.members(`upstreams/${id}`) !== undefined)).eql([
      true,
      true,
      false
    ])
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

/** Makes an API server for which the test gives every answer. */
function server() {
  const clock = manualClock()
  const { log, lines } = memoryLog()
  const waiting: { readonly what: string; readonly answer: PromiseWithResolvers<unknown> }[] = []
  const put = async <T>(what: string, signal?: AbortSignal): Promise<T> => {
    const answer = Promise.withResolvers<unknown>()
    signal?.addEventListener('abort', () => answer.reject(signal.reason as Error))
    waiting.push({ what, answer })
    return (await answer.promise) as T
  }
  const asking = createAsking({
    cluster: {
      fetchPod: (namespace, name, signal) => put<PodFact | undefined>(`${namespace}/${name}`, signal),
      fetchPodsByIp: (ip, signal) => put<readonly PodFact[]>(ip, signal),
      fetchService: ({ namespace, name }, signal) => put<boolean>(`${namespace}/${name}`, signal)
    },
    clock,
    log
  })
  return { asking, clock, lines, waiting, turn: () => new Promise(resolve => setImmediate(resolve)) }
}

describe('asking', () => {
  it('makes one call for all simultaneous callers with the same question, and a new one later', async () => {
    const { asking, clock, waiting } = server()
    const both = [asking.ownersOf('10.0.0.1'), asking.ownersOf('10.0.0.1')]
    expect(waiting.map(({ what }) => what)).to.deep.equal(['10.0.0.1'])
    waiting[0]?.answer.resolve([pod('a')])
    for (const one of both) expect((await one)?.map(({ name }) => name)).to.deep.equal(['a'])
    clock.advance(100)
    void asking.ownersOf('10.0.0.1')
    expect(waiting).to.have.length(2)
  })

  it('has a bounded number of open calls', async () => {
    const { asking, waiting, turn } = server()
    for (let i = 0; i < 40; i++) void asking.ownersOf(`10.0.0.${i}`)
    await turn()
    expect(waiting).to.have.length(16)
    waiting[0]?.answer.resolve([])
    await turn()
    expect(waiting).to.have.length(17)
  })

  it('waits for one second, queueing included, and does not read a missing answer as "none"', async () => {
    const { asking, clock, waiting, lines } = server()
    const all = Array.from({ length: 17 }, (_, i) => asking.ownersOf(`10.0.0.${i}`))
    clock.advance(1000)
    expect(await Promise.all(all)).to.deep.equal(all.map(() => undefined))
    expect(waiting).to.have.length(16)
    expect(lines[0]).to.include({ msg: 'could not ask the API server, so the node is left alone' })
  })

  it('distinguishes a removed pod from a missing answer', async () => {
    const { asking, clock, waiting } = server()
    const [gone, unknown] = [
      asking.pod({ namespace: 'shop', name: 'a' }),
      asking.pod({ namespace: 'shop', name: 'b' })
    ]
    expect(waiting.map(({ what }) => what)).to.deep.equal(['shop/a', 'shop/b'])
    waiting[0]?.answer.resolve(undefined)
    expect(await gone).to.deep.equal({ pod: undefined })
    clock.advance(1000)
    expect(await unknown).to.equal(undefined)
  })

  it('a removed Service, or one without an answer, is not refreshed', async () => {
    for (const [answer, expected] of [
      [true, true],
      [false, false],
      [new Error('refused'), false]
    ] as const) {
      const { asking, waiting } = server()
      const refreshed = asking.refresh({ namespace: 'shop', name: 'web' })
      expect(waiting[0]?.what).to.equal('shop/web')
      if (answer instanceof Error) waiting[0]?.answer.reject(answer)
      else waiting[0]?.answer.resolve(answer)
      expect(await refreshed).to.equal(expected)
    }
  })
})
