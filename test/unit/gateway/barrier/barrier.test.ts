import { expect } from 'chai'

import { systemClock } from '../../../../agent/base/clock.ts'
import { createBarrierClient } from '../../../../agent/gateway/apisix/barrier-api.ts'
import {
  ALWAYS_HERE as HERE,
  createGateways,
  type BarrierKeeper,
  type Gateways,
  type Knowledge
} from '../../../../agent/gateway/barrier/gateways.ts'
import type { DesiredDrain } from '../../../../agent/gateway/barrier/desired-entry.ts'
import type { GatewayFact, NodeKey, PodUid } from '../../../../agent/rules/drain/facts.ts'
import type { Barrier } from '../../../../sandbox/apisix/barrier.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../../../sandbox/apisix/gateway.ts'
import { createStore, keyOf } from '../../../../sandbox/apisix/store.ts'
import { silent, startRaw, until } from '../../../build/apisix.ts'
import { inflight } from '../../../build/evidence.ts'
import { GATEWAY } from '../../../build/gateway.ts'

const gateway = (id: string, ip: string, differs: Partial<GatewayFact> = {}): GatewayFact => ({
  ...GATEWAY,
  id,
  name: id,
  ip,
  ...differs
})
const entry = (
  name: string,
  state: DesiredDrain['state'] = 'draining',
  ...nodes: NodeKey[]
): DesiredDrain => ({
  uid: name as PodUid,
  nodes: nodes.length > 0 ? nodes : [`10.0.0.${name}`],
  state,
  watch: true
})
const quiet = (...of: Parameters<typeof entry>) => ({ ...entry(...of), watch: false })

/** A dictionary of this size, in bytes, has room for one entry. */
const ONE_ENTRY = 788

describe('barrier keeper', () => {
  let store: ReturnType<typeof createStore>
  const started: Gateway[] = []
  let gateways: Gateways
  let keeper: BarrierKeeper

  type Served = Partial<GatewayOptions> & { readonly unfit?: string }
  /** Starts one gateway. Like pods, all gateways have the same port and their own address. */
  const serve = async (host: string, port = 0, { unfit, ...options }: Served = {}) => {
    const requests: string[] = []
    const connections = { other: false }
    const gateway = await startGateway({
      store,
      name: host,
      host,
      proxyPort: 0,
      controlPort: 0,
      barrierPort: port,
      workers: 1,
      adminKey: '',
      barrierToken: 'token',
      applyDelay: () => 0,
      nextWorker: () => Number(connections.other),
      ...options
    })
    started.push(gateway)
    const { barrier, barrierApi: api, workers } = gateway
    if (!barrier || !api) throw new Error('a gateway without the plugin')
    if (unfit !== undefined) barrier.setUnfit(workers[0]!.pid, unfit)
    api.listener.server.on('request', r => requests.push(`${r.method} ${r.url?.split('/').at(-1)}`))
    return {
      gateway,
      barrier,
      api,
      requests,
      connections,
      port: api.listener.port,
      puts: () => requests.filter(r => r.startsWith('PUT')).length
    }
  }
  type Differs = { ttlMs?: number; token?: string; timeoutMs?: number; knowledge?: Knowledge }
  const begin = (port: number, { token = 'token', timeoutMs = 5000, ...differs }: Differs = {}) => {
    const api = createBarrierClient({ port, scheme: 'http', token: () => token, timeoutMs })
    gateways = createGateways({ barrier: { api, ...differs }, clock: systemClock, log: silent })
    keeper = gateways.barrier!
  }
  /** Starts one gateway that the keeper knows. */
  const kept = async (differs: Differs = {}, served: Served = {}) => {
    const g = await serve('127.0.7.1', 0, served)
    begin(g.port, differs)
    gateways.list([gateway('g1', '127.0.7.1')])
    return g
  }
  const reading = (name: string, id = 'g1') => keeper.reading(name as PodUid, id)
  const isRead = (name: string, id = 'g1') => until(`${name} is read`, () => reading(name, id) !== undefined)
  const becomes = (name: string, state: string, id = 'g1') =>
    until(`${name} is ${state}`, () => reading(name, id)?.entry === state)
  const states = (barrier: Barrier) => barrier.entries.all().map(e => [e.uid, e.ip, e.port, e.state])

  beforeEach(() => void (store = createStore()))
  afterEach(async () => {
    await gateways.stop()
    await Promise.all(started.splice(0).map(gateway => gateway.close()))
    store.close()
  })

  it('puts all desired entries in one call, and reads the state that the gateway returns', async () => {
    const g = await kept()
    g.barrier.inflight.up('10.0.0.1', 80, 'requests')
    keeper.desire([entry('1')])
    keeper.desire([entry('1'), entry('2', 'draining', '10.0.0.2:80', '[fd00::2]:81')])
    await isRead('2')
    expect(g.puts()).to.equal(1)
    expect(states(g.barrier)).to.have.deep.members([
      ['1', '10.0.0.1', undefined, 'draining'],
      ['2', '10.0.0.2', 80, 'draining'],
      ['2', 'fd00::2', 81, 'draining']
    ])
    expect(reading('1')).to.deep.include({
      instance: g.barrier.instance,
      fit: true,
      entry: 'draining',
      inflight: inflight(1),
      late: 0,
      readAfterSeal: false,
      problem: ''
    })
  })

  it('never replaces a read after the seal by an older answer', async () => {
    const g = await kept({}, { workers: 2 })
    const worker = g.gateway.workers[0]!
    g.barrier.inflight.up('10.0.0.1', 80, 'requests')
    keeper.desire([entry('1')])
    await until('the poll', () => g.requests.includes('POST inflight'))
    // The frozen worker has an answer to the poll, but cannot send it.
    worker.freeze()
    g.barrier.inflight.down('10.0.0.1', 80, 'requests')
    await new Promise(resolve => setTimeout(resolve, 30))
    g.connections.other = true
    keeper.desire([entry('1', 'sealed')])
    await becomes('1', 'sealed')
    const seen = new Set<unknown>()
    let polls = 0
    gateways.onChange(() => seen.add([reading('1')?.entry, reading('1')?.readAfterSeal].join(' ')) && polls++)
    worker.thaw()
    await until('further answers', () => polls >= 2)
    expect([...seen]).to.deep.equal(['sealed true'])
  })

  it('reports at once when one of many requests ends', async () => {
    const g = await kept()
    const names = Array.from({ length: 50 }, (_, i) => `${i + 1}`)
    for (const name of names) g.barrier.inflight.up(`10.0.0.${name}`, 80, 'requests')
    keeper.desire(names.map(name => entry(name, 'sealed')))
    await until('the long poll', () => g.requests.includes('POST inflight'))
    g.barrier.inflight.down('10.0.0.7', 80, 'requests')
    await until('it is heard', () => reading('7')?.inflight.requests === 0, 300)
    expect(names.filter(name => reading(name)?.inflight.requests === 0)).to.deep.equal(['7'])
    expect(g.puts()).to.equal(1)
  })

  /** Puts an upstream with these nodes into the configuration of the worker. */
  const upstream = (...nodes: string[]) => {
    const all = Object.fromEntries(nodes.map(node => [node, 1]))
    store.put(keyOf('upstreams', 'web'), { id: 'web', type: 'roundrobin', nodes: all })
    store.put(keyOf('routes', 'all'), { id: 'all', uri: '/*', upstream_id: 'web' })
  }
  const agreed = (name: string, id = 'g1') => new Map([[id, reading(name, id)?.word?.tags ?? []]])

  it('polls unsealed entries while requests stay in flight, and reports the workers’ words', async () => {
    const g = await kept()
    upstream('10.0.0.1:80')
    g.barrier.inflight.up('10.0.0.1', 80, 'requests')
    keeper.desire([entry('1')])
    await until('it has no other choice', () => reading('1')?.word?.sole.join() === 'upstreams/web')
    upstream('10.0.0.1:80', '10.0.0.2:80')
    await until(
      'it has one',
      () => reading('1')?.word?.sole.length === 0 && reading('1')?.word?.complete === true
    )
    expect(reading('1')?.word?.others).to.deep.equal([{ places: 1, nodes: ['10.0.0.2:80'], more: 0 }])
  })

  it('seals with the words that were judged, and only at the named gateways', async () => {
    const g = await serve('127.0.7.1')
    const other = await serve('127.0.7.2', g.port)
    begin(g.port)
    gateways.list([gateway('g1', '127.0.7.1'), gateway('g2', '127.0.7.2')])
    keeper.desire([entry('1')])
    await until('both have spoken', () => ['g1', 'g2'].every(id => reading('1', id)?.word?.complete === true))
    keeper.desire([{ ...entry('1', 'sealed'), agreed: agreed('1') }])
    await becomes('1', 'sealed')
    expect(reading('1')).to.deep.include({ readAfterSeal: true, problem: '' })
    expect(other.barrier.entries.look('10.0.0.1', 80)).to.equal('draining')
    expect(keeper.fetched().entries.map(({ state }) => state)).to.deep.equal(['draining'])
    keeper.desire([{ ...entry('1', 'sealed'), agreed: agreed('1', 'g2') }])
    await becomes('1', 'sealed', 'g2')
    expect(reading('1')?.entry).to.equal('sealed')
  })

  it('gives a gateway that starts the successors too', async () => {
    await kept()
    const successors = { '80': ['10.0.0.9:80'] }
    keeper.desire([{ ...entry('1', 'sealed'), successors, ways: ['web.shop'] }])
    expect(keeper.fetched().entries).to.deep.equal([
      { uid: '1', ip: '10.0.0.1', state: 'sealed', ttl: 60, successors }
    ])
  })

  for (const isListed of [false, true])
    it(`has a gateway refuse what it fetched while it could not be reached (listed: ${isListed}), once that is over`, async () => {
      const { port } = await kept({ knowledge: { ...HERE, asOf: () => 7 } })
      const both = [gateway('g1', '127.0.7.1'), gateway('g2', '127.0.7.2')]
      keeper.desire([quiet('0')])
      if (isListed) {
        gateways.list(both)
        await until('it cannot be reached', () => (reading('0', 'g2')?.problem ?? '') !== '')
      }
      keeper.desire([quiet('0'), entry('1', 'sealed')])
      expect(keeper.fetched().asOf).to.equal(7)
      keeper.desire([quiet('0')])
      const { barrier } = await serve('127.0.7.2', port)
      gateways.list(both)
      const isRefused = () => barrier.entries.isOutdated({ uid: '1', asOf: 6 })
      await until('it may come as late as it likes', isRefused)
    })

  it('does not seal with outdated words, and reads the current ones', async () => {
    const g = await kept()
    keeper.desire([entry('1')])
    await until('it has spoken', () => reading('1')?.word?.complete === true)
    const before = agreed('1')
    upstream('10.0.0.1:80')
    keeper.desire([{ ...entry('1', 'sealed'), agreed: before }])
    await until('it has no other choice', () => reading('1')?.word?.sole.join() === 'upstreams/web')
    expect(g.barrier.entries.look('10.0.0.1', 80)).to.equal('draining')
    keeper.desire([entry('1', 'sealed')])
    await becomes('1', 'sealed')
  })

  for (const [wire, older] of [
    [0, 'the plugin of this gateway'],
    [2, 'the agents']
  ] as const)
    it(`a plugin of wire version ${wire} proves nothing, and gets nothing put or deleted: upgrade ${older}`, async () => {
      const g = await kept()
      keeper.desire([entry('1', 'sealed')])
      await becomes('1', 'sealed')
      g.barrier.run(`require("apisix.drain.request").WIRE = ${wire}`)
      const before = states(g.barrier)
      keeper.desire([entry('2')])
      await until('it is read', () => (reading('2')?.problem ?? '') !== '')
      const why = `409: agent and plugin have different wire versions (1 and ${wire}): upgrade ${older}`
      expect(reading('2')?.problem).to.include(why.slice(5))
      expect(reading('2')).to.include({ fit: false, binding: false, readAfterSeal: false })
      await until('its state is read', () => (keeper.state('g1')?.problem ?? '').includes(why.slice(5)))
      expect(states(g.barrier)).to.deep.equal(before)
    })

  it('sends nothing when the desired entries have not changed', async () => {
    const g = await kept()
    keeper.desire([quiet('1')])
    await isRead('1')
    const before = reading('1')
    for (let i = 0; i < 5; i++) {
      keeper.desire([quiet('1')])
      gateways.list([gateway('g1', '127.0.7.1')])
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    expect(g.requests.filter(request => !request.startsWith('GET state'))).to.deep.equal([
      'PUT entries?words=true'
    ])
    expect(reading('1')).to.equal(before)
  })

  it('lifts an entry by uid when it is no longer desired, even if the first try fails', async () => {
    const g = await kept()
    keeper.desire([entry('1'), entry('2')])
    await isRead('2')
    g.api.faults.inject({ fault: { kind: 'status', status: 500 }, method: 'DELETE', times: 2 })
    keeper.desire([entry('2')])
    expect(reading('1')).to.equal(undefined)
    await until('it is lifted', () => states(g.barrier).every(([uid]) => uid !== '1'))
    await until('the other one is still kept', () => reading('2')?.problem === '')
    expect(states(g.barrier)).to.deep.equal([['2', '10.0.0.2', undefined, 'draining']])
  })

  it('lifts an address that left its entry, and keeps the others', async () => {
    const g = await kept()
    keeper.desire([entry('1', 'sealed', '10.0.0.1:80', '10.0.0.1:90')])
    await until('both are there', () => states(g.barrier).length === 2)
    keeper.desire([entry('1', 'sealed', '10.0.0.1:90')])
    await until('one is left', () => states(g.barrier).length === 1)
    await until('it is put again', () => reading('1')?.entry === 'sealed' && g.puts() === 2)
    expect(states(g.barrier)).to.deep.equal([['1', '10.0.0.1', 90, 'sealed']])
  })

  it('pushes all entries to a restarted gateway', async () => {
    const g = await kept()
    keeper.desire([entry('1'), quiet('2', 'sealed')])
    await isRead('2')
    await g.gateway.close()
    // At first the problem may be that a connection was closed during a call.
    await until('it is missed', () => reading('1')?.problem.includes('load the plugin') === true)
    const again = await serve('127.0.7.1', g.port)
    await until('it has them again', () => again.barrier.entries.size === 2)
    const { instance } = again.barrier
    await until('it is sealed again', () => {
      const { entry, instance: of, problem } = reading('2')!
      return entry === 'sealed' && of === instance && problem === ''
    })
  })

  it('detects a restart between two calls by the instance id', async () => {
    const g = await kept({ ttlMs: 3000 })
    keeper.desire([quiet('1')])
    await isRead('1')
    await g.gateway.close()
    const again = await serve('127.0.7.1', g.port)
    keeper.desire([quiet('1'), quiet('2')])
    await until('it has both', () => again.barrier.entries.size === 2, 900)
    await until('it is read again', () => reading('1')?.instance === again.barrier.instance)
  })

  it('remembers through failures and a restart that the gateway once answered fit, and never counts an unfit answer as fit', async () => {
    const g = await kept()
    keeper.desire([entry('1')])
    await until('it is read', () => reading('1')?.binding === true)
    await g.gateway.close()
    await until('it is missed', () => reading('1')?.problem !== '')
    expect(reading('1')?.binding).to.equal(true)
    const { barrier } = await serve('127.0.7.1', g.port, { unfit: 'a second nginx serves' })
    keeper.desire([entry('1'), entry('2')])
    await until('both are read', () => reading('2') !== undefined && reading('1')?.problem === '')
    expect(reading('1')).to.deep.include({ instance: barrier.instance, fit: false, binding: true })
    expect(reading('2')).to.deep.include({ instance: barrier.instance, fit: false, binding: false })
  })

  it('renews and removes nothing after an absence until a round with current data desires the entries', async () => {
    const g = await serve('127.0.7.1')
    const at = { resumed: -Infinity, known: -Infinity }
    begin(g.port, {
      ttlMs: 3000,
      knowledge: { ...HERE, resumedAt: () => at.resumed, knownAt: () => at.known }
    })
    gateways.list([gateway('g1', '127.0.7.1')])
    const held = quiet('1', 'sealed')
    keeper.desire([held, quiet('2', 'sealed')])
    await until('it has both', () => g.barrier.entries.size === 2)
    at.resumed = 1000
    const before = g.puts()
    const putAt = performance.now()
    expect(keeper.isKnown()).to.equal(false)
    // The keeper puts a new entry before the renewal of the held entries, which is due after a second.
    keeper.desire([held, entry('3')])
    await until('both have expired', () => states(g.barrier).length === 0)
    expect([g.puts(), performance.now() - putAt > 2500]).to.deep.equal([before, true])
    expect(g.requests.filter(request => request.startsWith('DELETE'))).to.deep.equal([])
    at.known = 1001
    keeper.desire([held, entry('3')])
    await until('both are put', () => states(g.barrier).length === 2)
    expect(keeper.isKnown()).to.equal(true)
  })

  it('puts an entry again at once when the gateway’s state no longer shows it', async () => {
    const g = await kept()
    keeper.desire([quiet('1', 'sealed'), quiet('2', 'sealed', '10.0.0.2', '10.0.1.2')])
    await until('it has them', () => g.barrier.entries.size === 3)
    const before = g.puts()
    const looks = () => g.requests.filter(request => request.startsWith('GET state')).length
    g.barrier.entries.remove(new Set(['2']))
    // The gateway has the entry of only one of the two addresses.
    g.barrier.entries.put({ uid: '2', ip: '10.0.0.2', port: undefined, state: 'sealed', ttl: 60 })
    await until('it is put again', () => g.barrier.entries.look('10.0.1.2', 80) === 'sealed')
    const states = looks()
    await until('the state is read on', () => looks() > states + 1)
    expect(g.puts()).to.equal(before + 1)
  })

  it('pushes all entries to a gateway again when its readiness changes', async () => {
    const g = await serve('127.0.7.1')
    begin(g.port)
    gateways.list([gateway('g1', '127.0.7.1', { ready: false })])
    keeper.desire([quiet('1')])
    await until('it has it', () => g.puts() === 1)
    gateways.list([gateway('g1', '127.0.7.1')])
    await until('it is told again', () => g.puts() === 2)
    gateways.list([])
    expect(reading('1'), 'of a removed gateway').to.equal(undefined)
  })

  it('names the remedy when the token is wrong, or another program answers', async () => {
    await kept({ token: 'not-this-one' })
    keeper.desire([entry('1')])
    await isRead('1')
    expect(reading('1')?.problem).to.contain('apisix.barrier.token').and.not.contain('not-this-one')
    await gateways.stop()
    const raw = await startRaw((_, response) => response.writeHead(404).end('<html>'))
    begin(raw.port)
    gateways.list([gateway('g1', '127.0.0.1')])
    keeper.desire([entry('1')])
    await isRead('1')
    expect(reading('1')?.problem).to.contain('not the barrier')
    await raw.close()
  })

  it('names the entries for which the dictionary is too small; the others hold', async () => {
    const g = await kept({}, { dictionaryBytes: ONE_ENTRY })
    keeper.desire([entry('1'), entry('2')])
    await isRead('2')
    expect(reading('1')).to.deep.include({ entry: 'draining', problem: '' })
    expect(reading('2')?.entry).to.equal('absent')
    expect(reading('2')?.problem).to.contain('custom_lua_shared_dict')
    expect(g.puts()).to.equal(1)
  })

  it('puts more than a thousand entries in batches', async () => {
    const g = await kept()
    const ip = (i: number) => `10.1.${i >> 8}.${i & 255}`
    keeper.desire(Array.from({ length: 2100 }, (_, i) => quiet(`p${i}`, 'sealed', ip(i))))
    await becomes('p2099', 'sealed')
    expect(g.puts()).to.equal(3)
    expect(g.barrier.entries.size).to.equal(2100)
  })
})
