import { expect } from 'chai'
import { readdirSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { readSecret } from '../../agent/hook/app.ts'
import { Backend } from './backend.ts'
import { stopAll } from './clean-up.ts'
import { many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { CURRENT_CAN_BREAK } from './held.ts'

describe('A gateway that', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend

  beforeEach(async () => {
    a = await Backend.start()
    b = await Backend.start()
  })
  afterEach(() => stopAll(gateway, a, b))

  it('has applied one kind of object and not another reports it', async () => {
    gateway = await Gateway.start({
      workers: 1,
      before: `
        ngx.timer.every(0.01, function()
          local applied = require("apisix.core").config.applied
          applied["/global_rules"] = { prev_index = 9000 }
        end)`
    })
    const { barrier } = gateway
    const revision = await gateway.configure({ u: { nodes: [a.node] } })
    await eventually('it tells both', async () => {
      const [worker] = (await barrier.state()).workers
      return worker?.revision === 9000 && worker.revisions.upstreams === revision
    })
    const first = await barrier.state()
    expect(first.workers[0]?.revisions).to.deep.equal({
      upstreams: revision,
      services: revision,
      routes: revision,
      global_rules: 9000
    })
    await gateway.configure({ u: { nodes: [b.node] } })
    await eventually('a change below the highest is told, with its time', async () => {
      const [worker] = (await barrier.state()).workers
      return worker?.revisions.upstreams === revision + 1 && worker.applied > (first.workers[0]?.applied ?? 0)
    })
  })

  it('restarts has another instance and no entry', async () => {
    gateway = await Gateway.start({ workers: 1 })
    await gateway.barrier.put(a.sealed)
    const before = await gateway.barrier.state()
    await gateway.restart()
    const after = await gateway.barrier.state()
    expect(after.instance).to.not.equal(before.instance)
    expect(after.entries).to.deep.equal([])
  })

  it('has no memory for its counts serves, is unfit, and says what it needs', async () => {
    gateway = await Gateway.start({
      workers: 1,
      early: 'require("apisix.drain.cells").prepare = function() end'
    })
    await gateway.configure({ u: { nodes: [a.node] } })
    const { barrier, url } = gateway
    await eventually('it serves', async () => (await send(`${url}/u`)).status === 200)
    expect((await barrier.state()).unfit.join()).to.match(/the memory for counts could not be mapped/)
  })

  it('loses a worker to SIGKILL: its counts are gone at once, and it is fit again with the new one', async () => {
    gateway = await Gateway.start({ workers: 2 })
    const { barrier, url } = gateway
    await gateway.configured({ u: { nodes: [a.node] } })
    await barrier.put(a.entry())
    const open = Array.from({ length: 8 }, async () => await send(`${url}/u?ms=3000`).catch(() => 'broken'))
    const told = async () => (await barrier.inflight([a.uid])).entries[0]?.inflight.requests
    await eventually('all are in flight', async () => (await told()) === 8)
    for (const pid of gateway.workers()) process.kill(pid, 'SIGKILL')
    await eventually('nothing is in flight', async () => (await told()) === 0)
    expect(await Promise.all(open)).to.deep.equal(Array(8).fill('broken'))
    const pids = () =>
      gateway
        .workers()
        .toSorted((x, y) => x - y)
        .join()
    await eventually('it knows the new ones, and no other', async () => {
      const { workers, fit: ok } = await barrier.state()
      return (
        ok &&
        workers.length === 2 &&
        workers
          .map(w => w.pid)
          .toSorted((x, y) => x - y)
          .join() === pids()
      )
    })
  })

  it('has a frozen worker: nothing it had queued reaches the node after the barrier answered', async () => {
    gateway = await Gateway.start({ workers: 2 })
    const { barrier, at } = gateway
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    const [host, port] = at.gateway.split(':')

    // opens enough connections for both workers, and then sends requests that the frozen worker does not read
    const sockets: Socket[] = []
    for (let i = 0; i < 24; i += 1) {
      const socket = connect(Number(port), host)
      socket.on('error', () => socket.destroy())
      sockets.push(socket)
      socket.write('GET /u HTTP/1.1\r\nHost: x\r\n\r\n')
      await new Promise(resolve => socket.once('data', resolve))
    }
    // the kernel may have given all connections to one worker, so the test freezes the worker with more connections
    const held = (pid: number) => readdirSync(`/proc/${pid}/fd`).length
    const frozen = gateway.workers().sort((x, y) => held(y) - held(x))[0] ?? 0
    await barrier.put(a.entry({ uid: 'look' }))
    await eventually('both have finished', async () => {
      const [told] = (await barrier.inflight(['look'])).entries
      return told?.inflight.requests === 0
    })
    await barrier.remove('look')
    process.kill(frozen, 'SIGSTOP')
    try {
      for (const socket of sockets) socket.write('GET /u?queued HTTP/1.1\r\nHost: x\r\n\r\n')
      await wait(200)

      // if the frozen worker has accepted the connection, no answer comes, so the test tries again
      await eventually('the barrier answers', async () => {
        const told = await Promise.race([barrier.put(a.sealed), wait(300)])
        return told?.entries[0]?.inflight.requests === 0
      })
      const before = a.requests.length
      const queued = 48 - a.requests.length - b.requests.length
      expect(queued, 'no request was queued on the frozen worker').to.be.above(0)
      process.kill(frozen, 'SIGCONT')
      await eventually('the queued ones are served', () => a.requests.length + b.requests.length === 48)
      expect(a.requests.length).to.equal(before)
    } finally {
      process.kill(frozen, 'SIGCONT')
      for (const socket of sockets) socket.destroy()
    }
  })

  describe('differs from what the plugin expects', () => {
    it('(no upvalue for retries) serves as if the plugin were not there, and is unfit', async () => {
      gateway = await Gateway.start({
        workers: 2,
        before: `
          local balancer = require("apisix.balancer")
          local own = balancer.run
          balancer.run = function(...) return own(...) end`
      })
      const { barrier } = gateway
      await eventually('both workers registered', async () => (await barrier.state()).workers.length === 2)
      const { unfit, workers, fit: ok } = await barrier.state()
      expect(ok).to.equal(false)
      expect(workers.map(w => w.fit)).to.deep.equal([false, false])
      expect(unfit.join()).to.match(/no upvalue pick_server/)
      await gateway.configure({ u: { nodes: [a.node] } })
      const told = await gateway.barrier.put(a.sealed)
      expect(told.fit).to.equal(false)
      await eventually('it serves', async () => (await send(`${gateway.url}/u`)).status === 200)
    })

    for (const name of ['http_log_phase', 'http_header_filter_phase', 'http_balancer_phase'])
      it(`(${name} replaced later) is unfit, names what replaced it, and is fit when it is back`, async () => {
        gateway = await Gateway.start({
          workers: 1,
          before: `
            ngx.timer.at(0.3, function()
              local apisix = require("apisix")
              local ours = apisix.${name}
              apisix.${name} = loadstring("", "@theirs.lua")
              ngx.sleep(1)
              apisix.${name} = ours
            end)`
        })
        const { barrier } = gateway
        await eventually('it is unfit', async () =>
          (await barrier.state()).unfit.join().includes(`apisix ${name} (by theirs.lua) was replaced`)
        )
        await gateway.untilFit()
      })

    it('(a worker without the plugin) is unfit', async () => {
      gateway = await Gateway.start({
        workers: 2,
        before: 'if ngx.worker.id() == 1 then require("apisix.balancer").init_worker = function() end end'
      })
      const { barrier } = gateway
      // A worker that still starts serves nobody, so it makes the gateway no less fit.
      await eventually('the worker without the plugin is named', async () => {
        const { unfit, workers } = await barrier.state()
        const without = gateway.workers().find(pid => !workers.some(w => w.pid === pid))
        return (
          unfit.join() ===
          `worker process ${without} has not registered: it has not loaded the plugin, or is from before a reload that is not over`
        )
      })
    })
  })

  it('has a bug in our hooks still serves, counts the error, keeps counting requests, and is unfit', async () => {
    gateway = await Gateway.start({
      workers: 1,
      before: CURRENT_CAN_BREAK
    })
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    await gateway.barrier.put(a.entry())
    await gateway.door('/break?what=current')
    expect((await many(`${gateway.url}/u`, 10)).map(r => r.status)).to.deep.equal(Array(10).fill(200))
    const { counts, fit: ok, unfit } = await gateway.barrier.state()
    expect(counts.errors).to.be.at.least(10)
    expect(ok).to.equal(false)
    expect(unfit.join()).to.match(/a hook failed/)
    expect((await gateway.barrier.inflight([a.uid])).entries[0]?.late, 'it was not sealed').to.equal(0)
    await gateway.barrier.put(a.sealed)
    await gateway.barrier.inflight([a.uid])
    await many(`${gateway.url}/u`, 10)
    expect((await gateway.barrier.inflight([a.uid])).entries[0]?.late).to.equal(5)
    const slow = send(`${gateway.url}/u?ms=500`)
    await eventually('it is counted', async () => {
      const told = await gateway.barrier.put(a.entry(), b.entry())
      return told?.entries.some(e => e.inflight.requests === 1) ?? false
    })
    await slow
    const told = await gateway.barrier.put(a.entry(), b.entry())
    expect(told.entries.map(e => e.inflight.requests)).to.deep.equal([0, 0])
  })

  it('has seen more addresses than it remembers still counts their requests in flight', async () => {
    gateway = await Gateway.start({
      workers: 1,
      before: `
          ngx.timer.every(0.05, function()
            if ngx.shared["stand-in"]:get("broken") ~= "forget" then return end
            for port = 1, 9000 do require("apisix.drain.address").of("10.0.0.1", port) end
            ngx.shared["stand-in"]:set("broken", "forgotten")
          end)`
    })
    await gateway.configured({ u: { nodes: [a.node] } })
    const { barrier, url } = gateway
    const slow = send(`${url}/u?ms=2000`)
    await eventually('it arrived', () => a.requests.includes('/u?ms=2000'))
    await gateway.door('/break?what=forget')
    await wait(300)
    expect((await send(`${url}/u`)).status).to.equal(200)
    expect((await barrier.put(a.sealed)).entries[0]?.inflight.requests).to.equal(1)
    await slow
    expect((await barrier.inflight([a.uid])).entries[0]?.inflight.requests).to.equal(0)
  })

  it('has no room for counts, counts on every address, so that no address seems idle', async () => {
    gateway = await Gateway.start({ workers: 1, counts: '12k' })
    await gateway.configured({ u: { nodes: [a.node] } })
    const { barrier, url } = gateway
    const nodes = Array.from({ length: 200 }, (_, i) => ({ host: `127.0.0.1`, port: 2 + i }))
    await gateway.configured({ u: { nodes: [a.node] }, full: { nodes, retries: 199 } })
    await send(`${url}/full`)
    const slow = send(`${url}/u?ms=800`)
    await eventually('it arrived', () => a.requests.includes('/u?ms=800'))
    const told = await barrier.put(a.entry(), { uid: 'elsewhere', ip: '10.0.0.1' })
    expect(told.entries.map(e => e.inflight.requests)).to.deep.equal([1, 1])
    await slow
    expect((await barrier.inflight([a.uid])).entries[0]?.inflight.requests).to.equal(0)
  })

  describe('fetches at start', () => {
    let agent: Server
    let asked: (string | undefined)[]
    let reply: () => { status: number; body: unknown }

    beforeEach(async () => {
      asked = []
      agent = createServer((request, response) => {
        asked.push(`${request.url} ${request.headers.authorization}`)
        const { status, body } = reply()
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      })
      await new Promise<void>(resolve => agent.listen(0, '127.0.0.1', resolve))
    })
    afterEach(() => {
      agent.closeAllConnections()
      agent.close()
    })

    const address = () =>
      `agent = "http://127.0.0.1:${(agent.address() as AddressInfo).port}", fetch_give_up = 2`
    const ready = async (g: Gateway) =>
      await g.barrier.send<{ ready: boolean; why?: string }>('GET', '/v1/barrier/ready', undefined, {})

    it('has the entries before it is ready', async () => {
      let open = false
      reply = () =>
        open ? { status: 200, body: { entries: [{ ...a.sealed, ttl: 60 }] } } : { status: 503, body: {} }
      gateway = await Gateway.start({ workers: 2, attr: address() })
      const early = await ready(gateway)
      expect(early.status).to.equal(503)
      expect(early.body.why).to.match(/fetching/)
      open = true
      const isFresh = async () => (await ready(gateway)).body.why === 'an agent may not know this gateway yet'
      await eventually('it waits for agents that do not know it yet', isFresh)
      const from = performance.now()
      await eventually('it is ready', async () => (await ready(gateway)).status === 200)
      expect(performance.now() - from).to.be.above(1000)
      expect((await gateway.barrier.state()).entries.map(e => [e.uid, e.state])).to.deep.equal([
        [a.uid, 'sealed']
      ])
      // This call is plain text, so it carries the read-only secret, not the token.
      expect(asked[0]).to.equal(`/v1/barrier-entries Bearer ${readSecret(gateway.at.token)}`)
      expect(asked.join(' ')).not.to.include(gateway.at.token)
    })

    it('does not store what agents have removed meanwhile, and asks again', async () => {
      const entries = [{ ...a.sealed, ttl: 60 }]
      reply = () => ({ status: 503, body: {} })
      gateway = await Gateway.start({ workers: 2, attr: address().replace(/2$/, '60') })
      await gateway.barrier.send('DELETE', '/v1/barrier/entries', { uids: [a.uid], asOf: 7 })
      const before = asked.length
      reply = () => ({ status: 200, body: { entries: asked.length > before + 1 ? [] : entries, asOf: 7 } })
      await eventually('it is ready', async () => (await ready(gateway)).status === 200)
      expect((await gateway.barrier.state()).entries).to.deep.equal([])
      expect((await ready(gateway)).body.why).to.equal(undefined)
    })

    it('reads no more of an answer than it may have', async () => {
      let written = 0
      agent.removeAllListeners('request')
      agent.on('request', (_request, response) => {
        response.writeHead(200)
        const part = 'x'.repeat(65_536)
        const more = () => {
          while (!response.destroyed && written < 2 ** 28) {
            written += part.length
            if (!response.write(part)) {
              response.once('drain', more)
              return
            }
          }
        }
        more()
      })
      gateway = await Gateway.start({ workers: 1, attr: address() })
      await eventually('it is ready', async () => (await ready(gateway)).status === 200)
      expect((await ready(gateway)).body.why).to.match(/failed: the answer is longer than 1048576 bytes/)
      // The gateway stops reading, so each try fills only the buffers of both sides: far less than the server would send.
      expect(written).to.be.below(2 ** 27)
    })

    const WIRE = 'plugin and agent have different wire versions (1 and 2): upgrade the plugin of this gateway'
    for (const [what, status, body, why] of [
      ['gives up in time, and logs it', 500, {}, ''],
      ['says why the agents refuse it', 409, { error: 'other-wire', why: WIRE, wire: 2 }, `: ${WIRE}`]
    ] as const)
      it(what, async () => {
        reply = () => ({ status, body })
        gateway = await Gateway.start({ workers: 2, attr: address() })
        await eventually('it is ready', async () => (await ready(gateway)).status === 200)
        expect((await ready(gateway)).body.why).to.equal(`failed: the agent answered ${status}${why}`)
      })
  })
})
