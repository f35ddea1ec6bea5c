import { expect } from 'chai'

import { systemClock, type Clock } from '../../../../agent/base/clock.ts'
import type { NodeKey, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { CodedError } from '../../../../agent/base/errors.ts'
import type { AdminApi, AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import { createWriter, type Writer, type WriterOptions } from '../../../../agent/gateway/write/writer.ts'
import type { Holder, HolderKey, Resource } from '../../../../agent/rules/plan/holder.ts'
import type { JsonObject } from '../../../../sandbox/apisix/json.ts'
import { silent, startAdmin, until } from '../../../build/apisix.ts'

const uid = (node: NodeKey) => `uid-${node}` as PodUid
const array = (...hosts: string[]) => hosts.map(host => ({ host, port: 80, weight: 100 }))
const map = (...hosts: string[]): JsonObject => Object.fromEntries(hosts.map(host => [`${host}:80`, 1]))

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
      giveUpMs: 1000,
      ...differs
    }))

  /** Returns the agent's client. `happens` runs once, between the client's read and its first write. */
  const meanwhile = (happens: () => void): Pick<AdminApi, 'get' | 'patch' | 'put'> => {
    let once: (() => void) | undefined = happens
    const before = <T>(go: () => Promise<T>) => {
      once?.()
      once = undefined
      return go()
    }
    return {
      get: (...all) => apisix.client.get(...all),
      patch: (...all) => before(() => apisix.client.patch(...all)),
      put: (...all) => before(() => apisix.client.put(...all))
    }
  }

  const holder = (key: HolderKey): Holder => {
    const [resource, id] = key.split('/') as [Resource, string]
    const value = apisix.value(resource, id) ?? {}
    const found = holdersOf({ resource, id, value, revision: 0 }).find(h => h.key === key)
    if (!found) throw new Error(`no holder ${key}`)
    return found
  }
  const remove = (of: Holder, ...nodes: NodeKey[]) =>
    writer.submit({ holder: of, nodes: nodes.map(key => ({ key, uid: uid(key) })) })
  const state = (key: HolderKey, node: NodeKey) => writer.status(key, node, uid(node))?.state
  const result = (key: HolderKey, node: NodeKey) => {
    const status = writer.status(key, node, uid(node))
    return [status?.state, status?.why]
  }

  /** Removes 10.0.0.1 from an upstream with `nodes`, which another writer changes to `then`. */
  const removeChanged = async (
    when: 'before our read' | 'during our write',
    id: string,
    nodes: Nodes,
    then: Nodes
  ) => {
    const put = (all: Nodes) => apisix.put('upstreams', id, { type: 'roundrobin', nodes: all })
    put(nodes)
    const planned = holder(`upstreams/${id}`)
    if (when === 'before our read') put(then)
    begin(when === 'during our write' ? { admin: meanwhile(() => put(then)) } : {})
    remove(planned, '10.0.0.1:80')
    await writer.idle()
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
    apisix.put('upstreams', 'web', {
      type: 'roundrobin',
      nodes: { ...map('10.0.0.1', '10.0.0.2'), 'b:80': 7 },
      desc: 'd'
    })
    begin()
    remove(holder('upstreams/web'), '10.0.0.1:80')
    expect(state('upstreams/web', '10.0.0.1:80')).to.equal('writing')
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal({ '10.0.0.2:80': 1, 'b:80': 7 })
    expect(apisix.value('upstreams', 'web')).to.include({ type: 'roundrobin', desc: 'd' })
    expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
    expect(apisix.requests.map(r => r.split(' ')[0])).to.deep.equal(['GET', 'PATCH', 'GET'])
    expect((learned.at(-1) as AdminObject).revision).to.equal(apisix.store.revision)
  })

  it('takes a node out of an array and sends the others byte for byte', async () => {
    const other = { weight: 7, host: '10.0.0.2', port: 80, priority: -2, metadata: { zone: 'a', list: [] } }
    apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: [...array('10.0.0.1'), other] })
    begin()
    remove(holder('upstreams/api'), '10.0.0.1:80')
    await writer.idle()
    expect(JSON.stringify(apisix.nodes('api'))).to.equal(JSON.stringify([other]))
    expect(state('upstreams/api', '10.0.0.1:80')).to.equal('removed')
  })

  it('writes all kinds of holder', async () => {
    const rules = (nodes: JsonObject | JsonObject[]) => ({
      'traffic-split': {
        rules: [
          { weighted_upstreams: [{ upstream: { type: 'roundrobin', nodes }, weight: 3 }, { weight: 1 }] }
        ]
      },
      'limit-req': { rate: 1, burst: 1, key: 'remote_addr' }
    })
    apisix.put('services', 's', { upstream: { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') } })
    apisix.put('routes', 'r', {
      uri: '/x',
      upstream: { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') },
      plugins: rules(map('10.0.0.1', '10.0.0.3'))
    })
    apisix.put('stream_routes', 't', { upstream: { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') } })
    apisix.put('plugin_configs', 'p', { plugins: rules(array('10.0.0.1', '10.0.0.4')) })
    apisix.put('consumers', 'jack', { username: 'jack', plugins: rules(map('10.0.0.1', '10.0.0.5')) })
    begin()
    const keys = [
      'services/s/upstream',
      'routes/r/upstream',
      'routes/r/plugins/traffic-split/0/0',
      'stream_routes/t/upstream',
      'plugin_configs/p/plugins/traffic-split/0/0',
      'consumers/jack/plugins/traffic-split/0/0'
    ]
    for (const key of keys) remove(holder(key), '10.0.0.1:80')
    await writer.idle()
    for (const key of keys) {
      expect(result(key, '10.0.0.1:80'), key).to.deep.equal(['removed', ''])
      expect(holder(key).nodes, key).to.have.length(1)
    }
    expect(apisix.value('plugin_configs', 'p')?.plugins).to.deep.equal(rules(array('10.0.0.4')))
    expect(apisix.value('routes', 'r')?.plugins).to.deep.equal(rules(map('10.0.0.3')))
    // The two holders of the route need only one write. The consumer needs a PUT, because APISIX cannot patch it.
    expect(apisix.writes().filter(w => w.includes('/routes/'))).to.have.length(1)
    expect(apisix.writes().filter(w => w.includes('/consumers/'))).to.deep.equal([
      'PUT /apisix/admin/consumers/jack'
    ])
  })

  it('writes IPv6 nodes and nodes without a port by their own spelling', async () => {
    apisix.put('upstreams', 'six', {
      type: 'roundrobin',
      nodes: { '[FD00:0::7]:80': 1, '10.0.0.1': 1, 'x:80': 1 }
    })
    begin()
    remove(holder('upstreams/six'), '[fd00::7]:80', '10.0.0.1')
    await writer.idle()
    expect(apisix.nodes('six')).to.deep.equal({ 'x:80': 1 })
  })

  describe('the last node', () => {
    it('is kept, judged by the current object and not by the planned one', async () => {
      await removeChanged('before our read', 'web', map('10.0.0.1', '10.0.0.2'), map('10.0.0.1'))
      expect(state('upstreams/web', '10.0.0.1:80')).to.equal('kept-last')
      expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.1'))
      expect(apisix.writes()).to.deep.equal([])
    })

    it('is removed if a standby of weight 0 takes the requests', async () => {
      apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: { '10.0.0.1:80': 1, 'parked:80': 0 } })
      begin()
      remove(holder('upstreams/web'), '10.0.0.1:80')
      await writer.idle()
      expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
      expect(holder('upstreams/web').nodes.map(n => n.key)).to.deep.equal(['parked:80'])
    })

    it('is not put back when another writer removed the rest at the same moment: that writer has the last word', async () => {
      await removeChanged('during our write', 'web', map('10.0.0.1', '10.0.0.2'), map('10.0.0.1'))
      expect(apisix.nodes('web')).to.deep.equal({})
      expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
    })
  })

  describe('other writers', () => {
    it('may add to a map in the middle of our write: merged', async () => {
      await removeChanged(
        'during our write',
        'web',
        map('10.0.0.1', '10.0.0.2'),
        map('10.0.0.1', '10.0.0.2', '10.0.0.3')
      )
      expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.2', '10.0.0.3'))
    })

    it('may add to an array in the middle of our write: lost until they write again, and we add nothing', async () => {
      await removeChanged(
        'during our write',
        'api',
        array('10.0.0.1', '10.0.0.2'),
        array('10.0.0.1', '10.0.0.2', '10.0.0.3')
      )
      expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.2'))
      expect(result('upstreams/api', '10.0.0.1:80')).to.deep.equal(['removed', ''])
    })

    it('can interfere only for one round trip: Kubernetes is read first, the object last', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
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
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(order.slice(0, 4)).to.deep.equal(['asked of the pod', 'asked for wishes', 'read', 'write'])
    })

    it('may add a node while Kubernetes is read: the object is read later, so the node is kept', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      let once = true
      begin({
        stillEnding: async () => {
          const nodes = array('10.0.0.1', '10.0.0.2', '10.0.0.3')
          if (once) apisix.put('upstreams', 'api', { type: 'roundrobin', nodes })
          once = false
          return true
        }
      })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.2', '10.0.0.3'))
    })

    it('may set a weight or rotate a key while Kubernetes is read: both stay', async () => {
      const consumer = (key: string, ...hosts: string[]) => ({
        username: 'jack',
        plugins: {
          'key-auth': { key },
          'traffic-split': {
            rules: [{ weighted_upstreams: [{ upstream: { type: 'roundrobin', nodes: array(...hosts) } }] }]
          }
        }
      })
      apisix.put('consumers', 'jack', consumer('old', '10.0.0.1', '10.0.0.2'))
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      const canary = array('10.0.0.1', '10.0.0.2').map(node => ({ ...node, weight: 7 }))
      let once = true
      begin({
        stillEnding: async () => {
          if (once) {
            apisix.put('consumers', 'jack', consumer('new', '10.0.0.1', '10.0.0.2'))
            apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: canary })
          }
          once = false
          return true
        }
      })
      remove(holder('consumers/jack/plugins/traffic-split/0/0'), '10.0.0.1:80')
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(apisix.value('consumers', 'jack')).to.deep.include(consumer('new', '10.0.0.2'))
      expect(apisix.nodes('api')).to.deep.equal(canary.slice(1))
    })

    it('trigger a second read of Kubernetes if this process was away before the write', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      let resumedAt = -Infinity
      let questions = 0
      begin({
        admin: {
          ...apisix.client,
          async get(...all) {
            const object = await apisix.client.get(...all)
            // The pod is gone meanwhile, and another pod has its address.
            if (questions === 1) resumedAt = systemClock.now() + 1
            return object
          }
        },
        wasAwaySince: at => resumedAt > at,
        stillEnding: () => ++questions === 1
      })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(questions).to.be.at.least(2)
      expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.1', '10.0.0.2'))
    })

    it('cause no read of Kubernetes for a node that is known to leave: later submissions join the same write', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2', '10.0.0.3') })
      const planned = holder('upstreams/api')
      let once = true
      begin({
        admin: {
          ...apisix.client,
          get: async (...all) => {
            // The first try fails. Meanwhile another pod begins to end.
            if (!once) return apisix.client.get(...all)
            once = false
            remove(planned, '10.0.0.2:80')
            throw new CodedError('ADMIN_UNREACHABLE', 'GET')
          }
        }
      })
      remove(planned, '10.0.0.1:80')
      await writer.idle()
      expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.3'))
      expect(apisix.writes()).to.have.length(1)
    })

    it('are named for nodes that are put back', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      const planned = { ...holder('upstreams/api'), owner: 'ingress-controller-1' as const }
      begin()
      const why = (node: NodeKey) => (remove(planned, node), result('upstreams/api', node)[1])
      remove(planned, '10.0.0.1:80')
      await writer.idle()
      expect(why('10.0.0.1:80')).to.match(/^put back: its writer is ingress controller 1.x/)
      await writer.idle()
    })

    it('may undo our removal at once: reported, and done again when it is planned again', async () => {
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      let undo = 1
      begin({
        admin: {
          ...apisix.client,
          patch: async (...all) => {
            const answer = await apisix.client.patch(...all)
            if (undo-- > 0)
              apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
            return answer
          }
        }
      })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(result('upstreams/api', '10.0.0.1:80')).to.deep.equal([
        'failed',
        'put back at once by an unknown writer (it has no label of an ingress controller)'
      ])
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(state('upstreams/api', '10.0.0.1:80')).to.equal('removed')
    })

    for (const [from, to] of [
      ['map', 'array'],
      ['array', 'map']
    ] as const)
      it(`may change the form from ${from} to ${to} in the middle of our write`, async () => {
        const three = (form: string) =>
          form === 'map' ? map('10.0.0.1', '10.0.0.2', '10.0.0.3') : array('10.0.0.1', '10.0.0.2', '10.0.0.3')
        await removeChanged('during our write', 'web', three(from), three(to))
        expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
        expect(holder('upstreams/web').nodes.map(n => n.key)).to.deep.equal(['10.0.0.2:80', '10.0.0.3:80'])
      })

    it('may use another form than last time', async () => {
      await removeChanged(
        'before our read',
        'web',
        map('10.0.0.1', '10.0.0.2'),
        array('10.0.0.1', '10.0.0.2')
      )
      expect(apisix.nodes('web')).to.deep.equal(array('10.0.0.2'))
    })

    it('at the same object at the same time: every conflict is tried again, nothing is lost', async () => {
      const hosts = Array.from({ length: 21 }, (_, i) => `10.0.1.${i}`)
      apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map(...hosts) })
      begin({ giveUpMs: 5000 })
      const other = (host: string): Promise<unknown> =>
        apisix.client
          .patch('upstreams', 'web', { nodes: { [`${host}:80`]: null } })
          .catch(() =>
            new Promise(resolve => setTimeout(resolve, Math.random() * 20)).then(() => other(host))
          )
      remove(holder('upstreams/web'), '10.0.1.0:80')
      await Promise.all([...hosts.slice(1, 20).map(other), writer.idle()])
      expect(apisix.nodes('web')).to.deep.equal(map('10.0.1.20'))
      expect(state('upstreams/web', '10.0.1.0:80')).to.equal('removed')
    })
  })

  it('reports a deleted object as gone, before our read and during our write', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
    const planned = holder('upstreams/web')
    begin({ admin: meanwhile(() => apisix.remove('upstreams', 'web')) })
    remove(planned, '10.0.0.1:80')
    await writer.idle()
    expect(result('upstreams/web', '10.0.0.1:80')).to.deep.equal(['removed', 'the holder is gone'])
    expect(learned).to.include('upstreams/web')
    remove(planned, '10.0.0.2:80')
    await writer.idle()
    expect(result('upstreams/web', '10.0.0.2:80')).to.deep.equal(['removed', 'the holder is gone'])
  })

  it('reports a node that is already absent as removed, without a write', async () => {
    await removeChanged('before our read', 'web', map('10.0.0.1', '10.0.0.2'), map('10.0.0.2'))
    expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
    expect(apisix.writes()).to.deep.equal([])
  })

  for (const spread of [0, 300, 900])
    it(`needs at most 3 writes for 200 nodes that end within ${spread} ms`, async () => {
      const hosts = Array.from({ length: 200 }, (_, i) => `10.0.2.${i}`)
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array(...hosts, '10.0.0.1') })
      begin()
      const planned = holder('upstreams/api')
      const beganAt = performance.now()
      for (const host of hosts) {
        remove(planned, `${host}:80`)
        if (spread > 0) await new Promise(resolve => setTimeout(resolve, spread / hosts.length))
      }
      // On a busy machine the ends take longer, and each further half second needs one more write.
      const late = Math.max(0, performance.now() - beganAt - 1.2 * spread)
      await writer.idle()
      expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.1'))
      expect(apisix.writes().length).to.be.within(1, spread === 0 ? 1 : 3 + Math.ceil(late / 500))
      expect(hosts.every(host => state('upstreams/api', `${host}:80`) === 'removed')).to.equal(true)
    })

  it('a removal may wait a moment for other ending nodes', async () => {
    apisix.put('upstreams', 'web', {
      type: 'roundrobin',
      nodes: map('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4')
    })
    // The test decides when the pause is over.
    const over = Promise.withResolvers<void>()
    const waits: number[] = []
    const sleep = async (ms: number) => (waits.push(ms), over.promise)
    begin({ clock: { ...systemClock, sleep }, gatherMs: 25 })
    const planned = holder('upstreams/web')
    remove(planned, '10.0.0.1:80')
    await new Promise(resolve => setImmediate(resolve))
    expect([waits, apisix.requests]).to.deep.equal([[25], []])
    remove(planned, '10.0.0.2:80')
    over.resolve()
    // The last removal comes right after the pause, as from a loop that was about to look for changes. One write must do all.
    setImmediate(() => remove(planned, '10.0.0.3:80'))
    await writer.idle()
    expect(apisix.writes()).to.have.length(1)
    expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.4'))
  })

  it('a removal that every round submits again is queued once', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
    begin()
    const planned = holder('upstreams/web')
    for (let round = 0; round < 20; round++) {
      remove(planned, '10.0.0.1:80')
      await new Promise(resolve => setImmediate(resolve))
      if (state('upstreams/web', '10.0.0.1:80') === 'removed') break
    }
    await writer.idle()
    expect(apisix.writes()).to.have.length(1)
  })

  it('forget drops all status, and keeps unwritten removals', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
    apisix.faults.inject({ fault: { kind: 'status', status: 503 }, method: 'GET', times: 2 })
    begin()
    remove(holder('upstreams/web'), '10.0.0.1:80')
    writer.forget(uid('10.0.0.1:80'))
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.1', '10.0.0.2'))
    expect(state('upstreams/web', '10.0.0.1:80')).to.equal(undefined)
  })

  it('a node that is no longer ending when its turn comes is left alone', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2', '10.0.0.3') })
    begin({ stillEnding: (_, node) => node !== '10.0.0.2:80' })
    remove(holder('upstreams/web'), '10.0.0.1:80', '10.0.0.2:80')
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.2', '10.0.0.3'))
    expect(state('upstreams/web', '10.0.0.1:80')).to.equal('removed')
  })

  it('a node that a later plan keeps is left alone, also if its removal is under way', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2', '10.0.0.3') })
    const { client } = apisix
    begin({
      admin: {
        ...client,
        async get(...asked) {
          const read = await client.get(...asked)
          writer.keep({ holder: 'upstreams/web', node: '10.0.0.2:80', uid: uid('10.0.0.2:80') })
          return read
        }
      }
    })
    remove(holder('upstreams/web'), '10.0.0.1:80', '10.0.0.2:80')
    await writer.idle()
    expect(apisix.nodes('web')).to.deep.equal(map('10.0.0.2', '10.0.0.3'))
  })

  it('a removed node is reported as removed even after nothing shows that its address was an ending pod’s', async () => {
    apisix.put('upstreams', 'web', { nodes: map('10.0.0.1', '10.0.0.2', '10.0.0.3') })
    // Like the loop, this asks the inventory, which learns the object at every read.
    const isListed = (node: NodeKey) => Object.hasOwn(nodesAsLearned(), node)
    const listedFirst = apisix.value('upstreams', 'web') as JsonObject
    const nodesAsLearned = () =>
      ((learned.at(-1) as AdminObject | undefined)?.value ?? listedFirst)['nodes'] as JsonObject
    const slept: number[] = []
    const sleep: Clock['sleep'] = (ms, signal) => (slept.push(ms), systemClock.sleep(ms, signal))
    begin({ stillEnding: (_, node) => isListed(node), clock: { ...systemClock, sleep } })
    remove(holder('upstreams/web'), '10.0.0.1:80')
    await writer.idle()
    expect(result('upstreams/web', '10.0.0.1:80')).to.deep.equal(['removed', ''])

    // A write without an outcome counts as fruitless, and the next one waits: 500 ms, then twice that, and so on.
    remove(holder('upstreams/web'), '10.0.0.2:80')
    await writer.idle()
    expect(Math.max(...slept)).to.be.below(400)
    expect(apisix.value('upstreams', 'web')?.['nodes']).to.deep.equal(map('10.0.0.3'))
  })

  it('a status belongs to this pod only, not to the next pod at its address', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
    begin()
    remove(holder('upstreams/web'), '10.0.0.1:80')
    await writer.idle()
    expect(writer.status('upstreams/web', '10.0.0.1:80', 'another' as PodUid)).to.equal(undefined)
  })

  describe('a broken Admin API', () => {
    beforeEach(() =>
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
    )

    for (const [name, fault] of [
      ['etcd down', { kind: 'status', status: 503 }],
      ['500', { kind: 'status', status: 500 }],
      ['409', { kind: 'status', status: 409 }],
      ['412', { kind: 'status', status: 412 }],
      ['400', { kind: 'status', status: 400 }],
      ['a login page', { kind: 'status', status: 200, body: '<html>', contentType: 'text/html' }],
      ['an empty answer', { kind: 'status', status: 200, body: '', contentType: 'application/json' }],
      ['an answer cut off', { kind: 'close-mid-body' }],
      ['a closed connection', { kind: 'reset' }]
    ] as const)
      it(`that recovers is waited for: ${name}`, async () => {
        begin({ giveUpMs: 5000 })
        const planned = holder('upstreams/api')
        apisix.faults.inject({ fault, method: 'PATCH', times: 2 })
        remove(planned, '10.0.0.1:80')
        await writer.idle()
        expect(state('upstreams/api', '10.0.0.1:80')).to.equal('removed')
        expect(apisix.nodes('api')).to.deep.equal(array('10.0.0.2'))
      })

    it('that applies our write and never answers: read instead of written again', async () => {
      await apisix.close()
      apisix = await startAdmin({ timeoutMs: 50 })
      apisix.put('upstreams', 'api', { type: 'roundrobin', nodes: array('10.0.0.1', '10.0.0.2') })
      begin({ giveUpMs: 5000 })
      apisix.faults.inject({ fault: { kind: 'applied-but-timed-out' }, method: 'PATCH', times: 1 })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      expect(state('upstreams/api', '10.0.0.1:80')).to.equal('removed')
      expect(apisix.writes()).to.have.length(1)
    })

    it('that refuses our key fails at once and names the remedy', async () => {
      begin()
      apisix.faults.inject({ fault: { kind: 'status', status: 401 } })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      await writer.idle()
      const [is, why] = result('upstreams/api', '10.0.0.1:80')
      expect(is).to.equal('failed')
      expect(why).to.contain('apisix.admin.key').and.not.contain('secret-key')
      expect(apisix.requests).to.have.length(1)
    })

    it('that stays broken fails in time; the next round tries again after a pause', async () => {
      begin({ giveUpMs: 300 })
      const lift = apisix.faults.inject({ fault: { kind: 'status', status: 503 } })
      const planned = holder('upstreams/api')
      remove(planned, '10.0.0.1:80')
      await writer.idle()
      expect(state('upstreams/api', '10.0.0.1:80')).to.equal('failed')
      lift()
      const asked = apisix.requests.length
      remove(planned, '10.0.0.1:80')
      expect(state('upstreams/api', '10.0.0.1:80'), 'stays visible').to.equal('failed')
      await new Promise(resolve => setImmediate(resolve))
      expect(apisix.requests).to.have.length(asked)
      await writer.idle()
      expect(state('upstreams/api', '10.0.0.1:80')).to.equal('removed')
    })

    it('that hangs for one object delays no other', async () => {
      apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
      begin()
      apisix.faults.inject({ fault: { kind: 'hang' }, path: '/apisix/admin/upstreams/api' })
      remove(holder('upstreams/api'), '10.0.0.1:80')
      remove(holder('upstreams/web'), '10.0.0.1:80')
      await until('the other is removed', () => state('upstreams/web', '10.0.0.1:80') === 'removed', 500)
      expect(state('upstreams/api', '10.0.0.1:80')).to.equal('writing')
    })
  })

  it('the writer notifies its listeners, and stops with writes still open', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: map('10.0.0.1', '10.0.0.2') })
    begin()
    let told = 0
    const end = writer.onChange(() => told++)
    remove(holder('upstreams/web'), '10.0.0.1:80')
    expect(told).to.equal(0)
    await writer.idle()
    expect(told).to.equal(1)
    end()
    apisix.faults.inject({ fault: { kind: 'hang' } })
    remove(holder('upstreams/web'), '10.0.0.2:80')
    await writer.stop()
    remove(holder('upstreams/web'), '10.0.0.9:80')
    expect(told).to.equal(1)
  })
})
