import { expect } from 'chai'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StateOut } from './barrier.ts'
import { Backend } from './backend.ts'
import { removeEntries, stopAll } from './clean-up.ts'
import { send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

const ENTRIES = '/v1/barrier/entries'
const entry = { uid: 'u-1', ip: '10.0.0.7', port: 8080, state: 'draining', ttl: 30 }

describe('Barrier API', () => {
  let gateway: Gateway
  let pod: Backend

  before(async () => {
    gateway = await Gateway.start()
    pod = await Backend.start()
    await gateway.configured({ a: { nodes: [pod.node] } })
  })
  after(() => stopAll(gateway, pod))
  afterEach(() => removeEntries(gateway))

  it('reports the revision of a worker even if it is lower than before, after a restore of etcd', async () => {
    for (const revision of [5000, 40]) {
      const body = JSON.stringify({ a: { nodes: [pod.node] } })
      await fetch(`http://${gateway.at.door}/config?revision=${revision}`, { method: 'POST', body })
      await eventually('every worker has it', async () => {
        const { workers } = await gateway.barrier.state()
        return workers.every(w => w.revision === revision)
      })
    }
  })

  it('reports its state: fit, the applied revision of every worker, and the dictionary', async () => {
    const revision = await gateway.configure({ a: { nodes: [pod.node] } })
    let state = await gateway.barrier.state()
    await eventually('every worker has it', async () => {
      state = await gateway.barrier.state()
      return state.workers.every(w => w.revision === revision)
    })
    expect(state).to.include({ plugin: '0.3.0', apisix: '3.18.0-stand-in', fit: true })
    expect(state.unfit).to.deep.equal([])
    expect(state.workers.map(w => w.id)).to.have.members([0, 1, 2])
    expect(state.workers.map(w => w.pid)).to.have.members(gateway.workers())
    for (const worker of state.workers) {
      expect(worker.fit).to.equal(true)
      expect(worker.applied).to.be.within(state.now - 2, state.now)
      expect(worker.seen).to.be.within(state.now - 3, state.now)
    }
    expect(state.entries).to.deep.equal([])
    expect(state.counts).to.have.all.keys('moved', 'bypasses', 'refused', 'errors', 'succeeded')
    expect(state.dictionary.capacity).to.equal(2 * 1024 * 1024)
    expect(state.dictionary.free).to.be.within(1, state.dictionary.capacity)
  })

  it('passes an answer on with its age, until the entry is removed', async () => {
    const entry = { uid: 'told', ip: '10.9.0.1', state: 'sealed', ttl: 60 } as const
    const text = '{"pod":"web-1","why":"a/b \\"c\\" é"}'
    await gateway.barrier.put({ ...entry, answer: text, answeredFor: 3.5 })
    await gateway.barrier.put({ ...entry, answer: 'another', answeredFor: 0 })
    const [told] = (await gateway.barrier.state()).entries
    expect(told?.answer).to.equal(text)
    expect(told?.answeredFor).to.be.within(3.5, 5)
    await gateway.barrier.send('DELETE', ENTRIES, { uids: ['told'] })
    await gateway.barrier.put(entry)
    expect((await gateway.barrier.state()).entries[0]).not.to.have.any.keys('answer', 'answeredFor')
    await gateway.barrier.send('DELETE', ENTRIES, { uids: ['told'] })
  })

  describe('token', () => {
    const refused = async (headers: Record<string, string>) =>
      (await gateway.barrier.send('GET', '/v1/barrier/state', undefined, headers)).status

    it('is required everywhere except on the readiness path', async () => {
      for (const [method, path] of [
        ['GET', '/v1/barrier/state'],
        ['PUT', ENTRIES],
        ['DELETE', ENTRIES],
        ['POST', '/v1/barrier/inflight'],
        ['GET', '/nowhere']
      ] as const) {
        const answer = await gateway.barrier.send(method, path, method === 'GET' ? undefined : {}, {})
        expect(answer.status, path).to.equal(401)
        expect(answer.headers.get('www-authenticate')).to.equal('Bearer')
        expect(answer.body.error_msg).to.match(/Authorization: Bearer/)
      }
      const ready = await gateway.barrier.send('GET', '/v1/barrier/ready', undefined, {})
      expect(ready).to.deep.include({ status: 200, body: { ready: true, wire: 1 } })
    })

    it('must match exactly', async () => {
      for (const given of ['x', `${gateway.at.token}x`, gateway.at.token.slice(0, -1), '']) {
        expect(await refused({ authorization: `Bearer ${given}` }), given).to.equal(401)
      }
      expect(await refused({ authorization: gateway.at.token })).to.equal(401)
      expect(await refused({ authorization: `bearer ${gateway.at.token}` })).to.equal(200)
    })

    it('is reread from its file, and the previous one is accepted for a while', async () => {
      const file = join(gateway.at.dir, 'token')
      writeFileSync(file, 'rotated\n')
      await eventually(
        'the new token is taken',
        async () => (await refused({ authorization: 'Bearer rotated' })) === 200
      )
      expect(await refused({ authorization: `Bearer ${gateway.at.token}` })).to.equal(200)
      writeFileSync(file, gateway.at.token)
    })
  })

  describe('paths and methods', () => {
    it('413 for a body over 1 MiB', async () => {
      const answer = await gateway.barrier.send('PUT', ENTRIES, ' '.repeat(1024 * 1024 + 1))
      expect(answer.status).to.equal(413)
      expect(answer.body.error_msg).to.match(/1048576/)
    })
  })

  describe('wire version', () => {
    for (const [version, older] of [
      [0, 'the agents'],
      [2, 'the plugin of this gateway']
    ] as const)
      it(`${version} is refused, with what to upgrade: nothing is stored, removed or told`, async () => {
        const { entries: before } = await gateway.barrier.put({ uid: entry.uid, ip: entry.ip })
        const other = async (method: string, what: string, body?: unknown) => {
          const { status, body: told } = await gateway.barrier.send(
            method,
            `/v${version}/barrier/${what}`,
            body
          )
          expect(told, what).to.deep.equal({
            wire: 1,
            error_msg: `agent and plugin have different wire versions (${version} and 1): upgrade ${older}`
          })
          return status
        }
        const uids = { uids: [entry.uid] }
        expect(await other('PUT', 'entries', { entries: [{ ...entry, uid: 'other' }] })).to.equal(409)
        expect(await other('DELETE', 'entries', uids)).to.equal(409)
        expect(await other('POST', 'inflight', uids)).to.equal(409)
        expect(await other('GET', 'state')).to.equal(409)
        expect(await other('GET', 'a-later-path')).to.equal(409)
        const { entries } = await gateway.barrier.state()
        expect(entries.map(({ uid }) => uid)).to.deep.equal(before.map(({ uid }) => uid))
        const ready = await gateway.barrier.send('GET', `/v${version}/barrier/ready`, undefined, {})
        expect(ready.status, 'a probe of the kubelet').to.equal(200)
      })

    it('is in every answer', async () => {
      const uids = { uids: ['u'] }
      for (const [method, path, body] of [
        ['PUT', ENTRIES, { entries: [] }],
        ['DELETE', ENTRIES, uids],
        ['POST', '/v1/barrier/inflight', uids],
        ['GET', '/v1/barrier/state', undefined],
        ['GET', '/v1/barrier/nothing', undefined]
      ] as const)
        expect((await gateway.barrier.send(method, path, body)).body, path).to.include({ wire: 1 })
    })

    it('does not change for a new field, so a plugin ignores those that it does not know', async () => {
      const body = { entries: [{ ...entry, later: 1 }], also: {} }
      expect((await gateway.barrier.send('PUT', ENTRIES, body)).status).to.equal(200)
      expect((await gateway.barrier.state()).entries).to.have.lengthOf(1)
    })
  })

  describe('refuses with 400 and the reason', () => {
    const puts: [string, unknown, RegExp][] = [
      ['no JSON', '{', /not a JSON object/],
      ['a list', [entry], /send an object/],
      ['no entries', {}, /entries must be a list/],
      ['entries that are an object', { entries: { a: entry } }, /entries must be a list/],
      ['an entry that is no object', { entries: [entry, 'x'] }, /entries\[1\] is not an object/],
      ['no uid', { entries: [{ ...entry, uid: '' }] }, /uid must be/],
      ['a uid with a bar', { entries: [{ ...entry, uid: 'a|b' }] }, /uid must be/],
      ['a uid that is too long', { entries: [{ ...entry, uid: 'a'.repeat(129) }] }, /uid must be/],
      ['a name for an ip', { entries: [{ ...entry, ip: 'web-1' }] }, /ip must be/],
      ['brackets', { entries: [{ ...entry, ip: '[::1]' }] }, /ip must be/],
      ['half an ip', { entries: [{ ...entry, ip: '10.0.7' }] }, /ip must be/],
      ['port 0', { entries: [{ ...entry, port: 0 }] }, /port must be/],
      ['port null', { entries: [{ ...entry, port: null }] }, /port must be/],
      ['half a port', { entries: [{ ...entry, port: 80.5 }] }, /port must be/],
      ['port 65536', { entries: [{ ...entry, port: 65536 }] }, /port must be/],
      ['another state', { entries: [{ ...entry, state: 'open' }] }, /state must be/],
      ['ttl 0', { entries: [{ ...entry, ttl: 0 }] }, /ttl must be/],
      ['a ttl over an hour', { entries: [{ ...entry, ttl: 3601 }] }, /ttl must be/],
      ['a ttl as text', { entries: [{ ...entry, ttl: '30' }] }, /ttl must be/],
      ['1001 entries', { entries: Array.from({ length: 1001 }, () => entry) }, /at most 1000/]
    ]
    for (const [what, body, reason] of puts) {
      it(`PUT entries: ${what}`, async () => {
        const answer = await gateway.barrier.send('PUT', ENTRIES, body)
        expect(answer.status).to.equal(400)
        expect(answer.body.error_msg).to.match(reason)
        expect((await gateway.barrier.state()).entries).to.deep.equal([])
      })
    }

    const others: [string, string, unknown, RegExp][] = [
      ['DELETE', ENTRIES, {}, /uids must be a list/],
      ['DELETE', ENTRIES, { uids: [1] }, /uids\[0\]/],
      ['POST', '/v1/barrier/inflight', { uids: 'u' }, /uids must be a list/],
      ['POST', '/v1/barrier/inflight', { uids: [], wait: 31 }, /wait must be/],
      ['POST', '/v1/barrier/inflight', { uids: [], wait: -1 }, /wait must be/]
    ]
    for (const [method, path, body, reason] of others) {
      it(`${method} ${path.split('/').at(-1)}: ${JSON.stringify(body)}`, async () => {
        const answer = await gateway.barrier.send(method, path, body)
        expect(answer.status).to.equal(400)
        expect(answer.body.error_msg).to.match(reason)
      })
    }
  })

  describe('entries', () => {
    it('are accepted a thousand at a time', async () => {
      const list = Array.from({ length: 1000 }, (_, i) => ({
        uid: `u-${i}`,
        ip: `10.1.${i >> 8}.${i & 255}`,
        port: 80
      }))
      const told = await gateway.barrier.put(...list)
      expect(told.entries.map(e => e.uid)).to.deep.equal(list.map(e => e.uid))
      expect((await gateway.barrier.remove(...list.map(e => e.uid))).removed).to.equal(1000)
    })
  })

  describe('in flight', () => {
    it('waits until one of the uids is idle', async () => {
      const slow = send(`${gateway.url}/a?hold`)
      await eventually('it is in flight', async () => {
        const told = await gateway.barrier.put(pod.entry())
        return told.entries[0]?.inflight.requests === 1
      })
      let over = false
      const poll = gateway.barrier.inflight([pod.uid], 20).finally(() => (over = true))
      await gateway.lookedAgain()
      expect(over).to.equal(false)
      const from = performance.now()
      pod.release()
      expect((await poll).entries[0]?.inflight).to.deep.equal({ requests: 0, long: 0 })
      expect(performance.now() - from, 'the poll itself ends after 20 s').to.be.below(15_000)
      expect((await slow).status).to.equal(200)
    })
  })

  it('507 names the setting to enlarge, keeps the stored entries, and evicts nothing', async () => {
    const small = await Gateway.start({ dictionary: '64k', workers: 1 })
    try {
      await small.barrier.put({ uid: 'u-first', ip: '10.9.9.9', state: 'sealed' })
      const list = Array.from({ length: 1000 }, (_, i) => ({
        ...entry,
        uid: `u-${i}`,
        ip: `10.1.${i >> 8}.${i & 255}`
      }))
      const answer = await small.barrier.send('PUT', ENTRIES, { entries: list })
      expect(answer.status).to.equal(507)
      expect(answer.body.error_msg).to.match(/enlarge apisix-drain/)
      expect(answer.body.entries).to.have.length(1000)
      const stored = answer.body.entries.filter(e => e.state === 'draining')
      const refused = answer.body.entries.filter(e => e.error !== undefined)
      expect(stored.length).to.be.above(10)
      expect(refused.length).to.equal(1000 - stored.length)
      expect(refused[0]).to.not.have.property('state')
      const state = await small.barrier.state()
      expect(state.entries.map(e => e.uid)).to.have.members(['u-first', ...stored.map(e => e.uid)])
      await small.barrier.remove(...stored.map(e => e.uid))
      expect((await small.barrier.put({ uid: 'u-later', ip: '10.1.0.1' })).entries[0]).to.include({
        state: 'draining'
      })
    } finally {
      await small.stop()
    }
  })

  it('names the missing dictionary if it is not configured', async () => {
    const bare = await Gateway.start({ counts: '', workers: 1 })
    try {
      const answer = await bare.barrier.send<StateOut>('GET', '/v1/barrier/state')
      expect(answer.status).to.equal(503)
      expect(answer.body.error_msg).to.match(/apisix-drain-counts is missing/)
      const ready = await bare.barrier.send<{ ready: boolean }>('GET', '/v1/barrier/ready')
      expect(ready.body.ready).to.equal(true)
    } finally {
      await bare.stop()
    }
  })
})
