import { expect } from 'chai'

import { systemClock, type Clock } from '../../../../agent/base/clock.ts'
import type { NodeKey, PodUid } from '../../../../agent/rules/drain/facts.ts'
import type { AdminApi, AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import { createWriter, type Writer, type WriterOptions } from '../../../../agent/gateway/write/writer.ts'
import type { Holder, HolderKey, Resource } from '../../../../agent/rules/plan/holder.ts'
import type { JsonObject } from '../../../../sandbox/apisix/json.ts'
import { silent, startAdmin } from '../../../build/apisix.ts'

const uid = (node: NodeKey) => `uid-${node}` as PodUid
const ip = (n: number) => `10.0.0.${n}`
const A = '10.0.0.1:80'
const B = '10.0.0.2:80'
const array = (...ns: number[]) => ns.map(n => ({ host: ip(n), port: 80, weight: 100 }))
const map = (...ns: number[]): JsonObject => Object.fromEntries(ns.map(n => [`${ip(n)}:80`, 1]))
const upstream = (nodes: Nodes) => ({ type: 'roundrobin', nodes })
const split = (nodes: Nodes) => ({
  'traffic-split': {
    rules: [{ weighted_upstreams: [{ upstream: upstream(nodes), weight: 3 }, { weight: 1 }] }]
  }
})

type Nodes = ReturnType<typeof array> | JsonObject

describe('writer', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  let writer: Writer
  const learned: (AdminObject | string)[] = []

  const begin = (differs: Partial<WriterOptions> = {}): Writer =>
    (writer = createWriter({
      admin: apisix.client,
      inventory: {
        learn: object => void learned.push(object),
        forget: (resource, id) => void learned.push(`${resource}/${id}`)
      },
      clock: systemClock,
      log: silent,
      ...differs
    }))

  /** Makes a function that calls `happens` the first time only. */
  const once = (happens: () => void) => {
    let left = 1
    return () => void (left-- > 0 && happens())
  }
  /** Returns the agent's client. `happens` runs once, between the client's read and its first write. */
  const meanwhile = (happens: () => void): Pick<AdminApi, 'get' | 'patch' | 'put'> => {
    const before = once(happens)
    return {
      get: (...all) => apisix.client.get(...all),
      patch: (...all) => (before(), apisix.client.patch(...all)),
      put: (...all) => (before(), apisix.client.put(...all))
    }
  }

  const put = (id: string, nodes: Nodes) => void apisix.put('upstreams', id, upstream(nodes))
  const holder = (key: HolderKey): Holder => {
    const [resource, id] = key.split('/') as [Resource, string]
    const value = apisix.value(resource, id) ?? {}
    const found = holdersOf({ resource, id, value, revision: 0 }).find(h => h.key === key)
    if (!found) throw new Error(`no holder ${key}`)
    return found
  }
  const remove = (of: Holder, ...nodes: NodeKey[]) =>
    writer.submit({ holder: of, nodes: nodes.map(key => ({ key, uid: uid(key) })) })
  /** Removes nodes, and waits until no write is under way. */
  const removed = async (key: HolderKey, ...nodes: NodeKey[]) => {
    remove(holder(key), ...nodes)
    await writer.idle()
  }
  const state = (key: HolderKey, node = A) => writer.status(key, node, uid(node))?.state
  const result = (key: HolderKey, node = A) => {
    const status = writer.status(key, node, uid(node))
    return [status?.state, status?.why]
  }

  /** Submits the removal of A in each round, until it has an outcome. */
  const inRounds = async (planned: Holder) => {
    do {
      remove(planned, A)
      await writer.idle()
    } while (state(planned.key) === 'writing')
  }

  beforeEach(async () => {
    learned.length = 0
    apisix = await startAdmin()
  })
  afterEach(async () => {
    await writer.stop()
    await apisix.close()
  })

  it('takes a node out of a map by null merge, reads it back, and touches nothing else', async () => {
    const nodes = { ...map(1, 2), 'b:80': 7 }
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes, desc: 'd' })
    begin()
    remove(holder('upstreams/web'), A)
    expect(state('upstreams/web')).to.equal('writing')
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal({ '10.0.0.2:80': 1, 'b:80': 7 })
    expect(apisix.value('upstreams', 'web')).to.include({ type: 'roundrobin', desc: 'd' })
    expect(state('upstreams/web')).to.equal('removed')
    expect(writer.status('upstreams/web', A, 'the next pod there' as PodUid)).to.equal(undefined)
    expect(apisix.requests.map(r => r.split(' ')[0])).to.deep.equal(['GET', 'PATCH', 'GET'])
    expect((learned.at(-1) as AdminObject).revision).to.equal(apisix.store.revision)
  })

  it('writes all kinds of holder', async () => {
    const limit = { 'limit-req': { rate: 1, burst: 1, key: 'remote_addr' } }
    const rules = (nodes: Nodes) => ({ ...split(nodes), ...limit })
    apisix.put('services', 's', { upstream: upstream(map(1, 2)) })
    apisix.put('routes', 'r', { uri: '/x', upstream: upstream(array(1, 2)), plugins: rules(map(1, 3)) })
    apisix.put('stream_routes', 't', { upstream: upstream(map(1, 2)) })
    apisix.put('plugin_configs', 'p', { plugins: rules(array(1, 4)) })
    apisix.put('consumers', 'jack', { username: 'jack', plugins: rules(map(1, 5)) })
    begin()
    const keys = [
      'services/s/upstream',
      'routes/r/upstream',
      'routes/r/traffic-split/0/0',
      'stream_routes/t/upstream',
      'plugin_configs/p/traffic-split/0/0',
      'consumers/jack/traffic-split/0/0'
    ]
    for (const key of keys) remove(holder(key), A)
    await writer.idle()
    for (const key of keys) {
      expect(result(key), key).to.deep.equal(['removed', ''])
      expect(holder(key).nodes, key).to.have.length(1)
    }
    expect(apisix.value('plugin_configs', 'p')?.plugins).to.deep.equal(rules(array(4)))
    expect(apisix.value('routes', 'r')?.plugins).to.deep.equal(rules(map(3)))
    // The two holders of the route need only one write. The consumer needs a PUT, because APISIX cannot patch it.
    expect(apisix.writes().filter(w => w.includes('/routes/'))).to.have.length(1)
    expect(apisix.writes().filter(w => w.includes('/consumers/'))).to.deep.equal([
      'PUT /apisix/admin/consumers/jack'
    ])
  })

  it('writes IPv6 nodes and nodes without a port by their own spelling', async () => {
    put('six', { '[FD00:0::7]:80': 1, '10.0.0.1': 1, 'x:80': 1 })
    begin()
    await removed('upstreams/six', '[fd00::7]:80', '10.0.0.1')
    expect(apisix.nodes('six')).to.deep.equal({ 'x:80': 1 })
  })

  const changes: readonly [what: string, when: 'read' | 'write', from: Nodes, to: Nodes, left: Nodes][] = [
    ['leaves only our node: the last one is kept', 'read', map(1, 2), map(1), map(1)],
    ['has removed our node already', 'read', map(1, 2), map(2), map(2)],
    ['parks the other node, as a standby', 'read', map(1, 2), { [A]: 1, [B]: 0 }, { [B]: 0 }],
    ['uses another form than last time', 'read', map(1, 2), array(1, 2), array(2)],
    ['removes the rest: that writer has the last word', 'write', map(1, 2), map(1), {}],
    ['adds to a map: merged', 'write', map(1, 2), map(1, 2, 3), map(2, 3)],
    ['adds to an array: lost until they write again', 'write', array(1, 2), array(1, 2, 3), array(2)],
    ['makes an array of the map', 'write', map(1, 2, 3), array(1, 2, 3), array(2, 3)],
    ['makes a map of the array', 'write', array(1, 2, 3), map(1, 2, 3), array(2, 3)]
  ]
  for (const [what, when, from, to, left] of changes)
    it(`allows a change before our ${when} that ${what}`, async () => {
      put('web', from)
      const planned = holder('upstreams/web')
      if (when === 'read') put('web', to)
      begin(when === 'write' ? { admin: meanwhile(() => put('web', to)) } : {})
      await inRounds(planned)
      expect(apisix.nodes('web')).to.deep.equal(left)
      expect(state('upstreams/web')).to.equal(A in left ? 'kept-last' : 'removed')
      if (JSON.stringify(to) === JSON.stringify(left)) expect(apisix.writes()).to.deep.equal([])
    })

  describe('other writers', () => {
    beforeEach(() => put('api', array(1, 2)))

    it('can interfere only for one round trip: Kubernetes is read first, the object last', async () => {
      const order: string[] = []
      const said = <T>(what: string, go: () => T): T => (order.push(what), go())
      begin({
        stillEnding: async () => said('asked of the pod', () => true),
        prepare: async () => said('asked for wishes', () => {}),
        admin: {
          ...apisix.client,
          get: (...all) => said('read', () => apisix.client.get(...all)),
          patch: (...all) => said('write', () => apisix.client.patch(...all))
        }
      })
      await removed('upstreams/api', A)
      expect(order.slice(0, 4)).to.deep.equal(['asked of the pod', 'asked for wishes', 'read', 'write'])
    })

    it('may set a weight or rotate a key while Kubernetes is read: both stay', async () => {
      const consumer = (key: string, ...ns: number[]) => ({
        username: 'jack',
        plugins: { 'key-auth': { key }, ...split(array(...ns)) }
      })
      apisix.put('consumers', 'jack', consumer('old', 1, 2))
      const canary = array(1, 2, 3).map(node => ({ ...node, weight: 7 }))
      const change = once(() => {
        apisix.put('consumers', 'jack', consumer('new', 1, 2))
        put('api', canary)
      })
      begin({ stillEnding: async () => (change(), true) })
      remove(holder('consumers/jack/traffic-split/0/0'), A)
      await removed('upstreams/api', A)
      expect(apisix.value('consumers', 'jack')).to.deep.include(consumer('new', 2))
      expect(apisix.nodes('api')).to.deep.equal(canary.slice(1))
    })

    it('trigger a second read of Kubernetes if this process was away before the write', async () => {
      let resumedAt = -Infinity
      let questions = 0
      // The pod is gone meanwhile, and another pod has its address.
      const away = () => void (questions === 1 && (resumedAt = systemClock.now() + 1))
      const get: AdminApi['get'] = (...all) => apisix.client.get(...all).finally(away)
      begin({
        admin: { ...apisix.client, get },
        wasAwaySince: at => resumedAt > at,
        stillEnding: () => ++questions === 1
      })
      await removed('upstreams/api', A)
      expect(questions).to.be.at.least(2)
      expect(apisix.nodes('api')).to.deep.equal(array(1, 2))
    })

    it('may undo our removal at once: reported, and done again when it is planned again', async () => {
      const undo = once(() => put('api', array(1, 2)))
      const patch: AdminApi['patch'] = (...all) => apisix.client.patch(...all).finally(undo)
      begin({ admin: { ...apisix.client, patch } })
      await removed('upstreams/api', A)
      expect(result('upstreams/api')).to.deep.equal(['failed', 'put back at once; its owner is unknown'])
      await removed('upstreams/api', A)
      expect(state('upstreams/api')).to.equal('removed')
    })
  })

  it('reports a deleted object as gone, before our read and during our write', async () => {
    put('web', map(1, 2))
    const planned = holder('upstreams/web')
    begin({ admin: meanwhile(() => apisix.remove('upstreams', 'web')) })
    for (const node of [A, B]) {
      remove(planned, node)
      await writer.idle()
      expect(result('upstreams/web', node)).to.deep.equal(['removed', 'the holder is gone'])
      expect(learned).to.include('upstreams/web')
    }
  })

  it('needs one write for 200 nodes that end at once', async () => {
    const ns = Array.from({ length: 200 }, (_, i) => i + 2)
    put('api', array(...ns, 1))
    begin()
    const planned = holder('upstreams/api')
    const keys: NodeKey[] = ns.map(n => `${ip(n)}:80`)
    for (const key of keys) remove(planned, key)
    await writer.idle()
    expect(apisix.nodes('api')).to.deep.equal(array(1))
    expect(apisix.writes()).to.have.length(1)
    expect(keys.every(key => state('upstreams/api', key) === 'removed')).to.equal(true)
  })

  it('a removal that every round submits again is queued once', async () => {
    put('web', map(1, 2))
    begin()
    const planned = holder('upstreams/web')
    for (let round = 0; round < 20; round++) {
      remove(planned, A)
      await new Promise(resolve => setImmediate(resolve))
      if (state('upstreams/web') === 'removed') break
    }
    await writer.idle()
    expect(apisix.writes()).to.have.length(1)
  })

  it('forget drops all status, and cancels unwritten removals', async () => {
    put('web', map(1, 2))
    apisix.faults.inject({ fault: { kind: 'status', status: 503 }, method: 'GET', times: 2 })
    begin()
    remove(holder('upstreams/web'), A)
    writer.forget(uid(A))
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal(map(1, 2))
    expect(state('upstreams/web')).to.equal(undefined)
  })

  it('a node that is no longer ending, or that a later plan keeps, is left alone, also if its removal is under way', async () => {
    put('web', map(1, 2, 3, 4))
    const kept = { holder: 'upstreams/web', node: B, uid: uid(B) } as const
    const get: AdminApi['get'] = (...all) => apisix.client.get(...all).finally(() => writer.keep(kept))
    begin({ admin: { ...apisix.client, get }, stillEnding: (_, node) => node !== '10.0.0.3:80' })
    await removed('upstreams/web', A, B, '10.0.0.3:80')
    expect(apisix.nodes('web')).to.deep.equal(map(2, 3, 4))
    expect(state('upstreams/web')).to.equal('removed')
  })

  it('a removed node is reported as removed even after nothing shows that its address was an ending pod’s', async () => {
    put('web', map(1, 2, 3))
    // Like the loop, this asks the inventory, which learns the object at every read.
    const listedFirst = apisix.value('upstreams', 'web')
    const latest = () => (learned.at(-1) as AdminObject | undefined)?.value ?? listedFirst
    const isListed = (node: NodeKey) => Object.hasOwn(latest()!['nodes'] as JsonObject, node)
    let [slept, now] = [[] as number[], 0]
    const sleep: Clock['sleep'] = async ms => void ((slept = [...slept, ms]), (now += ms))
    begin({ stillEnding: (_, node) => isListed(node), clock: { ...systemClock, now: () => now, sleep } })
    await removed('upstreams/web', A)
    expect(result('upstreams/web')).to.deep.equal(['removed', ''])

    // After a write without an outcome the next one would wait for 100 ms.
    await removed('upstreams/web', B)
    expect(slept).to.deep.equal([350])
    expect(apisix.nodes('web')).to.deep.equal(map(3))
  })

  describe('a broken Admin API', () => {
    beforeEach(() => put('api', array(1, 2)))
    for (const [name, fault] of [
      ...[503, 500, 409, 412, 400].map(status => [status, { kind: 'status', status }] as const),
      ['a login page', { kind: 'status', status: 200, body: '<html>', contentType: 'text/html' }],
      ['an empty answer', { kind: 'status', status: 200, body: '', contentType: 'application/json' }],
      ['an answer cut off', { kind: 'close-mid-body' }],
      ['a closed connection', { kind: 'reset' }]
    ] as const)
      it(`that recovers is waited for: ${name}`, async () => {
        begin()
        apisix.faults.inject({ fault, method: 'PATCH', times: 2 })
        await inRounds(holder('upstreams/api'))
        expect(state('upstreams/api')).to.equal('removed')
        expect(apisix.nodes('api')).to.deep.equal(array(2))
      })

    it('that applies our write and never answers: read instead of written again', async () => {
      await apisix.close()
      apisix = await startAdmin({ timeoutMs: 50 })
      put('api', array(1, 2))
      begin()
      apisix.faults.inject({ fault: { kind: 'applied-but-timed-out' }, method: 'PATCH', times: 1 })
      await inRounds(holder('upstreams/api'))
      expect(state('upstreams/api')).to.equal('removed')
      expect(apisix.writes()).to.have.length(1)
    })

    it('that refuses our key fails at once and names the remedy', async () => {
      begin()
      apisix.faults.inject({ fault: { kind: 'status', status: 401 } })
      await removed('upstreams/api', A)
      const [is, why] = result('upstreams/api')
      expect(is).to.equal('failed')
      expect(why).to.contain('apisix.admin.key').and.not.contain('secret-key')
      expect(apisix.requests).to.have.length(1)
    })

    it('that stays broken for seconds fails; the next round tries again after a pause', async () => {
      let now = 0
      const waits: number[] = []
      const sleep: Clock['sleep'] = async ms => void (waits.push(ms), (now += ms))
      begin({ clock: { ...systemClock, now: () => now, sleep } })
      const lift = apisix.faults.inject({ fault: { kind: 'status', status: 503 } })
      const planned = holder('upstreams/api')
      await inRounds(planned)
      expect(state('upstreams/api')).to.equal('failed')
      expect(waits).to.deep.equal([100, 200, 400, 800, 1600, 3200])
      lift()
      remove(planned, A)
      expect(state('upstreams/api'), 'stays visible').to.equal('failed')
      await writer.idle()
      expect(waits.at(-1)).to.equal(6400)
      expect(state('upstreams/api')).to.equal('removed')
    })
  })

  it('the writer notifies its listeners, and stops with writes still open', async () => {
    put('web', map(1, 2))
    begin()
    let told = 0
    const end = writer.onChange(() => told++)
    remove(holder('upstreams/web'), A)
    expect(told).to.equal(0)
    await writer.idle()
    expect(told).to.equal(1)
    end()
    apisix.faults.inject({ fault: { kind: 'hang' } })
    remove(holder('upstreams/web'), B)
    await writer.stop()
    remove(holder('upstreams/web'), '10.0.0.9:80')
    expect(told).to.equal(1)
  })
})
