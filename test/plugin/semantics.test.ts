import { expect } from 'chai'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Backend } from './backend.ts'
import { emptied, idle, stopAll } from './clean-up.ts'
import { atOnce, backends, many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

/** Opens an upgraded connection and waits for its 101. */
async function upgrade(gateway: Gateway, path: string) {
  const [host, port] = gateway.at.gateway.split(':')
  const socket = connect(Number(port), host)
  socket.on('error', () => socket.destroy())
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`)
  let heard = ''
  socket.on('data', part => {
    heard += part.toString()
  })
  await eventually('101', () => heard.startsWith('HTTP/1.1 101'))
  return socket
}

describe('The node of a request', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend
  let c: Backend
  const barrier = () => gateway.barrier
  const counts = async () => (await barrier().state()).counts

  /** Expects that only these pods get requests. Sends requests in parallel, because least_conn picks the least busy node. */
  const used = async (...pods: Backend[]) => {
    expect(backends(await atOnce(`${gateway.url}/u?ms=20`, 60))).to.have.members(pods.map(p => p.name))
  }

  before(async () => {
    gateway = await Gateway.start({
      server: `
        location = /elsewhere { return 200 "elsewhere"; }
        location /odd/ {
          set $upstream_host $http_host;
          error_page 500 =299 @odd;
          error_page 502 = /nowhere;
          proxy_intercept_errors on;
          access_by_lua_block { apisix.http_access_phase() }
          proxy_pass http://backend;
          log_by_lua_block { apisix.http_log_phase() }
        }
        location @odd { return 299 "odd"; }`
    })
    a = await Backend.start()
    b = await Backend.start()
    c = await Backend.start()
  })
  after(() => stopAll(gateway, a, b, c))
  afterEach(() => emptied(gateway, a, b, c))

  for (const type of ['roundrobin', 'least_conn'] as const) {
    it(`${type}: a draining node is avoided from the moment of the answer, and used again when the entry is lifted`, async () => {
      await gateway.configured({ u: { type, nodes: [a.node, b.node, c.node] } })
      await used(a, b, c)
      await barrier().put(a.entry())
      expect(backends(await many(`${gateway.url}/u`, 30))).to.not.include(a.name)
      await used(b, c)
      await barrier().put(b.entry())
      expect(backends(await many(`${gateway.url}/u`, 20))).to.deep.equal([c.name])
      await barrier().remove(a.uid, b.uid)
      await used(a, b, c)
    })
  }

  it('a single node gets requests while draining, counted as bypasses, and 503 follows once it is sealed', async () => {
    await gateway.configured({ u: { nodes: [a.node] } })
    await barrier().put(a.entry())
    const before = await counts()
    expect(backends(await many(`${gateway.url}/u`, 5))).to.deep.equal([a.name])
    const told = await barrier().put(a.sealed)
    expect(told.entries[0]).to.include({ state: 'sealed', bypasses: 5 })
    for (const { status } of await many(`${gateway.url}/u`, 6)) expect(status).to.equal(503)
    await gateway.lookedAgain()
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    const after = await counts()
    expect(after.bypasses - before.bypasses).to.equal(5)
    expect(after.refused - before.refused).to.equal(7)
    await barrier().remove(a.uid)
    expect((await send(`${gateway.url}/u`)).status).to.equal(200)
  })

  for (const standby of [{ weight: 0 }, { priority: -1 }])
    it(`a standby (${JSON.stringify(standby)}) comes after successors, and after a draining node (A7)`, async () => {
      const chosen = async () => backends(await many(`${gateway.url}/u`, 12))
      const successors = { [a.node.port]: [`${c.node.host}:${c.node.port}`] }
      await gateway.configured({ u: { nodes: [a.node, { ...b.node, ...standby }] } })
      await barrier().put(a.entry())
      expect(await chosen()).to.deep.equal([a.name])
      await barrier().put(a.sealed)
      expect(await chosen()).to.deep.equal([b.name])
      await barrier().put({ ...a.sealed, successors })
      expect(await chosen()).to.deep.equal([c.name])
      await barrier().put(c.sealed)
      expect(await chosen()).to.deep.equal([b.name])
      await barrier().remove(c.uid)
      await gateway.configured({ u: { nodes: [a.node, { ...b.node, ...standby }, c.node] } })
      await barrier().put({ ...a.sealed, successors: {} })
      expect(await chosen()).to.deep.equal([c.name])
    })

  it('of a draining and a sealed node the draining one gets the request', async () => {
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    await barrier().put(a.entry(), b.sealed)
    expect(backends(await many(`${gateway.url}/u`, 12))).to.deep.equal([a.name])
    expect((await barrier().inflight([a.uid])).entries[0]?.bypasses).to.equal(12)
  })

  it('an entry without port covers every port of the address, one with a port only that', async () => {
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    await barrier().put({ uid: a.uid, ip: a.node.host })
    expect(backends(await many(`${gateway.url}/u`, 12))).to.deep.equal([b.name])
    await barrier().remove(a.uid)
    await barrier().put(a.entry({ port: a.node.port === 1 ? 2 : 1 }))
    expect(backends(await many(`${gateway.url}/u`, 30))).to.have.members([a.name, b.name])
  })

  it('requests in flight are reported by address without a port, and by port', async () => {
    await gateway.configured({ u: { nodes: [a.node] } })
    const slow = send(`${gateway.url}/u?ms=500`)
    await eventually('it arrived', () => a.requests.includes('/u?ms=500'))
    const told = await barrier().put(
      { uid: 'any', ip: a.node.host },
      a.entry(),
      a.entry({ uid: 'other', port: 1 })
    )
    expect(told.entries.map(e => e.inflight.requests)).to.deep.equal([1, 1, 0])
    await slow
  })

  it('tells for how long an entry is sealed, and for how long its last request is over, whenever it is asked', async () => {
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    const before = await barrier().put(a.entry())
    expect(before.entries[0]).to.not.have.any.keys('sealedFor', 'idleFor')
    await barrier().remove(a.uid)
    await gateway.configured({ u: { nodes: [a.node] } })
    const slow = send(`${gateway.url}/u?ms=600`)
    await eventually('it arrived', () => a.requests.includes('/u?ms=600'))
    const asked = performance.now()
    const [busy] = (await barrier().put(a.sealed)).entries
    const answered = performance.now()
    expect(busy?.inflight.requests).to.equal(1)
    expect(busy?.sealedFor).to.be.within(0, (answered - asked) / 1000)
    expect(busy).to.not.have.property('idleFor')
    await slow
    const over = performance.now()
    await eventually('it is counted as over', async () =>
      (await barrier().inflight([a.uid])).entries.every(e => e.inflight.requests === 0)
    )
    await wait(300)
    const from = performance.now()
    const [idle] = (await barrier().put(a.sealed)).entries
    const to = performance.now()
    expect(idle?.sealedFor).to.be.within((from - answered) / 1000, (to - asked) / 1000)
    // The client may get the answer a little before the gateway counts the request as over.
    expect(idle?.idleFor).to.be.within(0.29, (to - over) / 1000 + 0.1)
    expect(idle?.idleFor).to.be.below((idle?.sealedFor ?? 0) - 0.3)
  })

  it('of two entries on an address the stricter one counts, and the address is free when both are lifted', async () => {
    await gateway.configured({ u: { nodes: [a.node] } })
    await barrier().put(a.entry(), a.entry({ uid: 'other', state: 'sealed' }))
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    await barrier().remove('other')
    expect((await send(`${gateway.url}/u`)).status).to.equal(200)
    expect((await barrier().inflight([a.uid])).entries[0]?.bypasses).to.equal(1)
  })

  it('an entry that expires is gone at once in every worker, with no other change', async () => {
    await gateway.configured({ u: { nodes: [a.node] } })
    const from = performance.now()
    await barrier().put(a.entry({ state: 'sealed', ttl: 1 }), b.entry({ ttl: 60 }))
    const put = performance.now()
    do {
      const { status } = await send(`${gateway.url}/u`)
      // nginx counts whole milliseconds.
      expect([503, performance.now() - from > 999 && 200]).to.include(status)
    } while (performance.now() < put + 1010)
    expect((await many(`${gateway.url}/u`, 30)).map(r => r.status)).to.deep.equal(Array(30).fill(200))
  })

  describe('retries', () => {
    let dead: Backend

    before(async () => {
      dead = await Backend.start()
      await dead.kill()
    })

    it('never go to a sealed node', async () => {
      await gateway.configured({ u: { nodes: [dead.node, a.node, b.node] } })
      await barrier().put(a.sealed)
      expect(backends(await many(`${gateway.url}/u`, 30))).to.deep.equal([b.name])
    })

    it('a draining node is the last resort of a retry, and that is a bypass', async () => {
      await gateway.configured({ u: { nodes: [dead.node, a.node] } })
      await barrier().put(a.entry())
      expect(backends(await many(`${gateway.url}/u`, 10))).to.deep.equal([a.name])
      expect((await barrier().inflight([a.uid])).entries[0]?.bypasses).to.equal(10)
    })

    it('a node that was sealed after the first pick is not used by the retry', async () => {
      const dying = await Backend.start()
      await gateway.configured({ u: { nodes: [dying.node, a.node, b.node] } })
      const arrived = () => dying.requests.length + a.requests.length + b.requests.length
      const before = arrived()
      const open = Array.from({ length: 30 }, () => send(`${gateway.url}/u?hold`))
      await eventually('all have arrived', () => arrived() === before + 30)
      await barrier().put(a.sealed)
      const seen = a.requests.length
      await dying.kill()
      await eventually('all are tried again', () => arrived() === before + 30 + dying.requests.length)
      for (const pod of [a, b]) pod.release()
      const replies = await Promise.all(open)
      expect(replies.every(r => r.status === 200)).to.equal(true)
      expect(a.requests.length).to.equal(seen)
      await idle(gateway, dying)
    })

    it('a refused retry is removed from every count', async () => {
      const dying = await Backend.start()
      await gateway.configured({ u: { nodes: [dying.node, a.node] } })
      await barrier().put(a.entry())
      const open = Array.from({ length: 10 }, () => send(`${gateway.url}/u?ms=2000`))
      await eventually('all are at the dying node', () => dying.requests.length === 10)
      await barrier().put(a.sealed, dying.sealed)
      await dying.kill()
      const replies = await Promise.all(open)
      expect(replies.map(r => r.status)).to.deep.equal(replies.map(() => 502))
      await idle(gateway, dying, a)
    })
  })

  describe('is counted in flight, and no longer, when it', () => {
    const flying = async (pod: Backend, requests: number, long = 0) =>
      await eventually(`${requests} requests and ${long} long are in flight`, async () => {
        const told = await barrier().put(pod.entry({ uid: 'look' }))
        await barrier().remove('look')
        const { inflight } = told.entries[0] ?? { inflight: { requests: -1, long: -1 } }
        return inflight.requests === requests && inflight.long === long
      })

    beforeEach(async () => {
      await gateway.configured({ u: { nodes: [a.node] }, odd: { nodes: [a.node] } })
    })

    it('ends well', async () => {
      const all = Promise.all(Array.from({ length: 5 }, () => send(`${gateway.url}/u?ms=300`)))
      await flying(a, 5)
      await all
      await idle(gateway, a)
    })

    it('is aborted by its client', async () => {
      const { promise: begun, resolve } = Promise.withResolvers<{ destroy(): unknown }>()
      const aborted = send(`${gateway.url}/u?ms=60000`, { started: resolve })
      // The request ends with an error, which the test checks later. Until then the rejection must count as handled.
      aborted.catch(() => {})
      await flying(a, 1)
      const request = await begun
      request.destroy()
      await aborted.then(
        () => expect.fail('it was answered'),
        () => undefined
      )
      await idle(gateway, a)
    })

    it('is ended by another plugin after the pick', async () => {
      expect((await send(`${gateway.url}/u?forbid=1`)).status).to.equal(403)
      await idle(gateway, a)
    })

    it('meets a node that is gone', async () => {
      const gone = await Backend.start()
      await gateway.configured({ u: { nodes: [gone.node] } })
      const open = send(`${gateway.url}/u?ms=5000`)
      await flying(gone, 1)
      await gone.kill()
      expect((await open).status).to.equal(502)
      expect((await send(`${gateway.url}/u`)).status).to.equal(502)
      await idle(gateway, gone)
    })

    it('is redirected inside nginx, out of APISIX’s view (X-Accel-Redirect, error_page)', async () => {
      await barrier().put(c.entry())
      const replies = [
        await send(`${gateway.url}/u?accel=/elsewhere`),
        await send(`${gateway.url}/u?accel=/elsewhere`),
        await send(`${gateway.url}/odd/?status=500`),
        // APISIX has no route for the redirected one
        await send(`${gateway.url}/odd/?status=502`)
      ]
      expect(replies.map(r => r.status)).to.deep.equal([200, 200, 299, 503])
      await eventually(
        'it is found',
        async () => {
          const told = await barrier().put(a.entry({ uid: 'look' }))
          await barrier().remove('look')
          return told.entries[0]?.inflight.requests === 0
        },
        20_000
      )
    })

    it('becomes a websocket: long-lived until it closes, whoever closes it', async () => {
      const first = await upgrade(gateway, '/u')
      const second = await upgrade(gateway, '/u')
      await flying(a, 0, 2)
      await barrier().put(a.sealed)
      const ordinary = await barrier().inflight([a.uid], 5)
      expect(ordinary.entries[0]?.inflight).to.include({
        requests: 0,
        long: 2,
        upgraded: 2,
        sse: 0,
        streams: 0
      })
      first.destroy()
      second.end()
      await idle(gateway, a)
    })
  })
})
