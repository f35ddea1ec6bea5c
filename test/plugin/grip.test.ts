import { expect } from 'chai'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { Backend } from './backend.ts'
import { emptied, stopAll } from './clean-up.ts'
import { backends, many, send, uploads } from './client.ts'
import { eventually } from './eventually.ts'
import { type Config, Gateway } from './gateway.ts'
import { CURRENT_CAN_BREAK } from './held.ts'
import { withAgent } from './with-agent.ts'

const inflight = async ({ barrier }: Gateway, pod: Backend) =>
  (await barrier.put(pod.entry())).entries[0]?.inflight.requests

describe("APISIX's plugin ai, which routes simple requests without apisix.balancer,", () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend
  /** Routes for which ai takes its shortcut, and routes for which it does not. */
  const simple = (): Config => ({ u: { home: 'routes', nodes: [a.node] } })
  const mixed = (): Config => ({ ...simple(), v: { nodes: [b.node] } })
  const statuses = async (n: number) => (await many(`${gateway.url}/u`, n)).map(reply => reply.status)

  before(async () => {
    gateway = await Gateway.start({ workers: 1, plugins: ['ai'] })
    a = await Backend.start()
    b = await Backend.start()
  })
  after(() => stopAll(gateway, a, b))
  afterEach(async () => {
    await emptied(gateway, a, b)
    const { fit, unfit } = await gateway.barrier.state()
    expect(fit, unfit.join()).to.equal(true)
  })

  it('sends nothing to a sealed node: 503, or a successor', async () => {
    await gateway.configured(simple())
    expect(await statuses(4)).to.deep.equal(Array(4).fill(200))
    await gateway.barrier.put(a.sealed)
    const reached = a.requests.length
    expect(await statuses(20)).to.deep.equal(Array(20).fill(503))
    const successors = { [a.node.port]: [`${b.node.host}:${b.node.port}`] }
    await gateway.barrier.put({ ...a.sealed, successors })
    expect(backends(await many(`${gateway.url}/u`, 20))).to.deep.equal([b.name])
    expect(a.requests.length).to.equal(reached)
  })

  it('counts its requests in flight', async () => {
    await gateway.configured(simple())
    const slow = Array.from({ length: 6 }, (_, i) => send(`${gateway.url}/u/${i}?ms=1500`))
    await eventually('all are counted', async () => (await inflight(gateway, a)) === 6)
    await Promise.all(slow)
    await eventually('none is in flight', async () => (await inflight(gateway, a)) === 0)
  })

  it('is kept off at every change of the routes, and when the plugins are reloaded', async () => {
    await gateway.barrier.put(a.sealed)
    const reached = a.requests.length
    for (const routes of [simple(), mixed(), simple(), mixed(), simple()]) {
      await gateway.configured(routes)
      expect(await statuses(4)).to.deep.equal(Array(4).fill(503))
      await gateway.door('/plugins/reload?names=ai')
      expect(await statuses(4)).to.deep.equal(Array(4).fill(503))
    }
    expect(a.requests.length).to.equal(reached)
  })

  it('fails no request that connects after a change of the routes, and it is counted', async () => {
    for (const [from, to] of [
      [simple(), mixed()],
      [mixed(), simple()]
    ] as const) {
      await gateway.configured(from)
      const finish = await uploads(gateway, '/u?ms=1000')
      await gateway.configured(to)
      expect(await statuses(1)).to.deep.equal([200])
      const late = finish()
      await eventually('it is counted', async () => (await inflight(gateway, a)) === 1)
      expect((await late)[0]?.status).to.equal(200)
    }
  })
})

describe('A plugin of APISIX that sends to the picked node by itself, as http-dubbo does,', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend

  before(async () => {
    gateway = await Gateway.start({ workers: 1, plugins: ['http-dubbo'] })
    a = await Backend.start()
    b = await Backend.start()
    await gateway.configured({ u: { nodes: [a.node] } })
  })
  after(() => stopAll(gateway, a, b))
  afterEach(() => emptied(gateway, a, b))

  for (const reloaded of [false, true])
    it(`is counted in flight, from its connect on, and sends nothing to a sealed node (reloaded: ${reloaded})`, async () => {
      if (reloaded) await gateway.door('/plugins/reload?names=http-dubbo')
      const slow = send(`${gateway.url}/u?ms=1000`)
      await eventually('it is counted', async () => (await inflight(gateway, a)) === 1)
      expect((await slow).status).to.equal(200)
      expect(await inflight(gateway, a)).to.equal(0)
      const reached = a.requests.length
      await gateway.barrier.put(a.sealed)
      expect((await send(`${gateway.url}/u`)).status).to.equal(503)
      await gateway.barrier.put({
        ...a.sealed,
        successors: { [a.node.port]: [`${b.node.host}:${b.node.port}`] }
      })
      const before = b.requests.length
      expect((await send(`${gateway.url}/u`)).status).to.equal(200)
      expect([a.requests.length, b.requests.length]).to.deep.equal([reached, before + 1])
    })

  it('is counted once if it leaves the request to nginx', async () => {
    const slow = send(`${gateway.url}/u?pass=1&ms=1000`)
    await eventually('it is counted', async () => (await inflight(gateway, a)) === 1)
    expect((await slow).status).to.equal(200)
    expect(await inflight(gateway, a)).to.equal(0)
  })
})

describe('A worker that connects a request without the plugin', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend

  before(async () => {
    a = await Backend.start()
    b = await Backend.start()
  })
  after(() => stopAll(undefined, a, b))
  afterEach(() => stopAll(gateway))

  /** A gateway whose own nginx.conf connects requests with `around` by the given function. */
  const around = async (set: string) => {
    gateway = await Gateway.start({
      workers: 1,
      early: 'EARLY = require("ngx.balancer").set_current_peer',
      before: CURRENT_CAN_BREAK,
      balancer: `
        if ngx.var.arg_around then ${set}("${a.node.host}", ${a.node.port})
        else apisix.http_balancer_phase() end`
    })
    await gateway.configured({ u: { nodes: [a.node] } })
    await gateway.untilFit()
    expect((await send(`${gateway.url}/u`)).status).to.equal(200)
    return gateway
  }
  const PAST =
    /^worker 0: a request went to 127\.[\d.]+:\d+ past the barrier: .+ connected it\. Take that out, then reload APISIX$/

  it('is unfit from that moment on, counts the request, and is fit again only after a reload', async () => {
    const g = await around('require("ngx.balancer").set_current_peer')
    const { url, barrier } = g
    const reached = a.requests.length
    const slow = send(`${url}/u?around=1&ms=1000`)
    await eventually('the pod has it', () => a.requests.length > reached)
    const finish = await uploads(g, '/u?around=1')
    const told = await barrier.put(a.sealed)
    expect(told.fit).to.equal(false)
    expect(told.entries[0]?.inflight.requests).to.equal(1)
    expect((await barrier.state()).unfit.join()).to.match(PAST)
    await slow
    expect((await finish())[0]?.status).to.equal(200)
    expect((await barrier.inflight([a.uid])).entries[0]).to.deep.include({ late: 1 })
    await g.lookedAgain()
    expect((await barrier.state()).fit).to.equal(false)
    g.reload()
    await g.untilFit()
  })

  it('is unfit when the answer begins, if only nginx knows of the request', async () => {
    const { url, barrier } = await around('EARLY')
    expect((await send(`${url}/u?around=1`)).status).to.equal(200)
    expect((await barrier.state()).unfit.join()).to.match(PAST)
  })

  it('names what connected the request, also if hooks of the plugin failed', async () => {
    const g = await around('EARLY')
    const { url, barrier } = g
    await barrier.put(a.entry())
    await g.door('/break?what=current')
    await send(`${url}/u`)
    expect((await barrier.state()).unfit.join()).to.match(/a hook failed/)
    await send(`${url}/u?around=1`)
    expect((await barrier.state()).unfit.join()).to.match(PAST)
  })

  it('is unfit also if that request has no answer', async () => {
    const { url, barrier } = await around('EARLY')
    const reached = a.requests.length
    const aborted = send(`${url}/u?around=1&ms=60000`, {
      started: request =>
        void eventually('the pod has it', () => a.requests.length > reached).then(() => request.destroy())
    })
    await aborted.catch(() => {})
    await eventually('it is unfit', async () => PAST.test((await barrier.state()).unfit.join()))
  })

  it('gives the agent no proof', async function () {
    this.timeout(60_000)
    const g = await around('require("ngx.balancer").set_current_peer')
    const world = await withAgent(g)
    try {
      const pods = [await world.pod(a, { graceSeconds: 12 }), await world.pod(b)]
      await world.route(pods)
      const slow = send(`${g.url}/u?around=1&ms=3000`)
      await eventually('the pod has it', () => a.requests.some(request => request.includes('ms=3000')))
      const reply = await world.end(pods[0]!)
      expect(reply.status).to.equal(503)
      await slow
    } finally {
      await world.close()
    }
  })

  it('stays fit if what it connects is no pod, or what connects is not APISIX', async () => {
    const socket = join(process.env['TMPDIR'] ?? '/tmp', `apisix-drain-${process.pid}.sock`)
    const server: Server = createServer((_, response) => response.end('ok')).listen(socket)
    const pod = `http://${a.node.host}:${a.node.port}`
    gateway = await Gateway.start({
      workers: 1,
      balancer: `
        if ngx.var.arg_around then require("ngx.balancer").set_current_peer("unix:${socket}")
        else apisix.http_balancer_phase() end`,
      server: `
        mirror /copy;
        location = /copy { internal; proxy_pass ${pod}/copied; }
        location = /theirs { proxy_pass ${pod}; }`
    })
    try {
      const { url, barrier } = gateway
      await gateway.configured({ u: { nodes: [a.node] } })
      const reached = a.requests.length
      expect((await many(`${url}/u?around=1`, 2)).map(r => r.body)).to.deep.equal(['ok', 'ok'])
      expect((await send(`${url}/theirs`)).status).to.equal(200)
      await eventually('all came', () => a.requests.length === reached + 4)
      await gateway.lookedAgain()
      expect((await barrier.state()).unfit).to.deep.equal([])
    } finally {
      server.close()
    }
  })

  for (const load of ['none', 'hook'] as const)
    it(`answers as APISIX alone if APISIX has given a request no upstream (${load})`, async () => {
      gateway = await Gateway.start({
        workers: 1,
        load,
        balancer: `
          if ngx.var.arg_around then
            require("ngx.balancer").set_current_peer("${a.node.host}", ${a.node.port})
          else apisix.http_balancer_phase() end`,
        before: `
          local apisix = require("apisix")
          local own = apisix.handle_upstream
          apisix.handle_upstream = function(...)
            return not ngx.var.arg_bare and own(...) or nil
          end`
      })
      await gateway.configure({ u: { nodes: [a.node] } })
      const { url } = gateway
      await eventually('it serves', async () => (await send(`${url}/u`)).status === 200)
      expect((await send(`${url}/u?bare=1`)).status).to.equal(500)
      expect(gateway.errors()).to.match(/apisix\/balancer\.lua:\d+: attempt to index/)
      expect(gateway.errors()).to.not.match(/drain\/wrappers\.lua:\d+: attempt/)
      if (load === 'none') return
      expect((await gateway.barrier.state()).counts.errors).to.equal(0)
      expect((await send(`${url}/u?around=1`)).status).to.equal(200)
      expect((await gateway.barrier.state()).unfit.join())
        .to.match(PAST)
        .and.not.match(/nginx\.conf connected/)
    })
})
