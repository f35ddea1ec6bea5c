import { Agent } from 'node:http'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import {
  deadAddress,
  eventually,
  httpNode,
  opened,
  rawNode,
  send,
  testGateway,
  type Reply,
  type TestGateway
} from './fixture.ts'

const OK = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** Expects the answers that APISIX 3.18 gave in measurements, case by case, over real sockets. */
describe('sandbox/apisix proxy: answers to a client', () => {
  const all = opened()
  let apisix: TestGateway

  beforeEach(async () => {
    // A single worker picks nodes in rotation. So with two nodes and two requests, each node is the first choice once.
    apisix = all.add(await testGateway({ workers: 1 }))
  })
  afterEach(() => all.close())

  const url = (): string => `${apisix.gateway.urls.proxy}/x`
  const twice = async (method: string, body?: string): Promise<Reply[]> => {
    const options = { method, ...(body === undefined ? {} : { body }) }
    return [await send(url(), options), await send(url(), options)]
  }
  const statuses = (replies: readonly Reply[]): number[] =>
    replies.map(({ status }) => status).sort((a, b) => a - b)
  const reset = () => rawNode(socket => socket.resetAndDestroy())
  const closing = () => rawNode(socket => socket.end())

  for (const empty of [{}, []])
    it(`no node (${JSON.stringify(empty)}): 503`, async () => {
      await apisix.route(empty)
      const reply = await send(url())
      expect([reply.status, reply.body]).to.deep.equal([503, PAGE_503])
    })

  it('upstream deleted with force: 502', async () => {
    await apisix.route({ '127.0.0.1:1': 1 })
    await apisix.admin('DELETE', 'upstreams/u?force=true')
    expect((await send(url())).status).to.equal(502)
  })

  it('no route: APISIX 404', async () => {
    const reply = await send(url())
    expect([reply.status, JSON.parse(reply.body)]).to.deep.equal([404, { error_msg: '404 Route Not Found' }])
  })

  it('weight 0, single node: still 200', async () => {
    const node = all.add(await httpNode())
    await apisix.route({ [node.address]: 0 })
    expect((await send(url())).status).to.equal(200)
  })

  it('all weights 0: still 200', async () => {
    const [a, b] = [all.add(await httpNode()), all.add(await httpNode())]
    await apisix.route({ [a.address]: 0, [b.address]: 0 })
    expect(statuses(await twice('GET'))).to.deep.equal([200, 200])
  })

  it('weights 0 and 1: only the 1', async () => {
    const [zero, one] = [all.add(await httpNode()), all.add(await httpNode())]
    await apisix.route({ [zero.address]: 0, [one.address]: 1 })
    await twice('GET')
    await twice('GET')
    expect([zero.seen.length, one.seen.length]).to.deep.equal([0, 4])
  })

  it('weight 0 next to a dead node: 502, a retry does not pick weight 0', async () => {
    const zero = all.add(await httpNode())
    await apisix.route({ [zero.address]: 0, [await deadAddress()]: 1 })
    expect(statuses(await twice('GET'))).to.deep.equal([502, 502])
    expect(zero.seen).to.deep.equal([])
  })

  for (const method of ['GET', 'POST'])
    it(`refused connect, another node is good: ${method} 200`, async () => {
      const good = all.add(await httpNode())
      await apisix.route({ [await deadAddress()]: 1, [good.address]: 1 })
      expect(statuses(await twice(method, method === 'POST' ? 'hello' : undefined))).to.deep.equal([200, 200])
      expect(good.seen.length).to.equal(2)
      expect(Math.max(...apisix.facts.map(fact => fact.nodes.length)), 'one was retried').to.equal(2)
    })

  it('refused connect, retries 0: 502', async () => {
    const good = all.add(await httpNode())
    await apisix.route({ [await deadAddress()]: 1, [good.address]: 1 }, { retries: 0 })
    expect(statuses(await twice('GET'))).to.deep.equal([200, 502])
  })

  it('refused connect, only node: 502', async () => {
    await apisix.route({ [await deadAddress()]: 1 })
    expect((await send(url())).status).to.equal(502)
  })

  for (const [name, make] of [
    ['resets', reset],
    ['closes', closing]
  ] as const) {
    for (const method of ['GET', 'PUT'])
      it(`node ${name} without an answer, another is good: ${method} 200, both received it`, async () => {
        const [bad, good] = [all.add(await make()), all.add(await httpNode())]
        await apisix.route({ [bad.address]: 1, [good.address]: 1 })
        expect(statuses(await twice(method, method === 'PUT' ? 'hello' : undefined))).to.deep.equal([
          200, 200
        ])
        expect(bad.seen.length, 'seen by the bad node').to.be.greaterThan(0)
        expect(good.seen.length).to.equal(2)
      })

    for (const method of ['POST', 'PATCH'])
      it(`node ${name} without an answer, another is good: ${method} 502`, async () => {
        const [bad, good] = [all.add(await make()), all.add(await httpNode())]
        await apisix.route({ [bad.address]: 1, [good.address]: 1 })
        expect(statuses(await twice(method, 'hello'))).to.deep.equal([200, 502])
      })
  }

  describe('keep-alive connection closed on reuse', () => {
    const stingy = () =>
      rawNode((socket: Socket, requests) => {
        if (requests === 1) socket.write(OK('first'))
        else socket.end()
      })

    it('only node: 502 even for GET', async () => {
      const node = all.add(await stingy())
      await apisix.route({ [node.address]: 1 })
      expect([(await send(url())).status, (await send(url())).status]).to.deep.equal([200, 502])
    })

    for (const [method, wanted] of [
      ['GET', 200],
      ['POST', 502]
    ] as const)
      it(`another node is good: ${method} ${wanted}`, async () => {
        const [bad, good] = [all.add(await stingy()), all.add(await httpNode())]
        await apisix.route({ [bad.address]: 1, [good.address]: 1 })
        const body = method === 'POST' ? 'hello' : undefined
        await twice(method, body)
        expect(statuses(await twice(method, body))).to.deep.equal([200, wanted])
        expect(bad.seen.length, 'the connection was used again').to.be.at.least(2)
      })
  })

  describe('read timeout', () => {
    for (const [method, wanted] of [
      ['GET', 200],
      ['POST', 504]
    ] as const)
      it(`another node is good: ${method} ${wanted}`, async () => {
        const [silent, good] = [all.add(await rawNode(() => {})), all.add(await httpNode())]
        await apisix.route(
          { [silent.address]: 1, [good.address]: 1 },
          { timeout: { connect: 1, send: 1, read: 0.05 } }
        )
        expect(statuses(await twice(method, method === 'POST' ? 'hello' : undefined))).to.deep.equal([
          200,
          wanted
        ])
        expect(silent.seen.length).to.be.at.least(1)
      })

    it('only node: 504', async () => {
      const silent = all.add(await rawNode(() => {}))
      await apisix.route({ [silent.address]: 1 }, { timeout: { connect: 1, send: 1, read: 0.05 } })
      expect((await send(url())).status).to.equal(504)
    })
  })

  for (const [form, head] of [
    ['a length', 'Content-Length: 100'],
    ['chunks', 'Transfer-Encoding: chunked']
  ])
    it(`node dies in the middle of a body with ${form}: 200, truncated`, async () => {
      const node = all.add(
        await rawNode(socket => {
          socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${form === 'chunks' ? '5\r\nhello\r\n' : 'hello'}`)
          setTimeout(() => socket.resetAndDestroy(), 30)
        })
      )
      await apisix.route({ [node.address]: 1 })
      expect(await send(url())).to.deep.equal({ status: 200, body: 'hello', truncated: true })
      await eventually(() => apisix.facts.length === 1)
      expect(apisix.facts[0]?.truncated).to.equal(true)
    })

  it('passes method, path, body and headers, and keeps its connection to the node', async () => {
    const ports = new Set<number | undefined>()
    const node = all.add(
      await httpNode((incoming, response) => {
        ports.add(incoming.socket.remotePort)
        let body = ''
        incoming.on('data', (chunk: Buffer) => (body += chunk.toString()))
        incoming.on('end', () => {
          response.setHeader('x-two', ['1', '2'])
          response.end(`${incoming.headers.host} ${String(incoming.headers['x-mine'])} ${body}`)
        })
      })
    )
    await apisix.route({ [node.address]: 1 })
    for (let n = 0; n < 3; n += 1) {
      const answer = await fetch(`${apisix.gateway.urls.proxy}/a/b?c=d`, {
        method: 'POST',
        body: 'hello',
        headers: { 'x-mine': 'yes' }
      })
      expect(answer.headers.get('x-two')).to.equal('1, 2')
      expect(await answer.text()).to.equal(`${new URL(apisix.gateway.urls.proxy).host} yes hello`)
    }
    expect(node.seen).to.deep.equal(Array(3).fill('POST /a/b?c=d'))
    expect(ports.size).to.equal(1)
  })

  it('splits traffic by weight, and serves the other kinds of route', async () => {
    const [a, b, c] = [all.add(await httpNode()), all.add(await httpNode()), all.add(await httpNode())]
    await apisix.route({ [a.address]: 1 })
    await apisix.admin('PUT', 'services/s', { upstream: { nodes: { [c.address]: 1 } } })
    await apisix.admin('PUT', 'routes/service', { uri: '/service/*', service_id: 's' })
    await apisix.admin('PUT', 'routes/inline', {
      uri: '/inline',
      upstream: { nodes: [{ host: '127.0.0.1', port: b.port, weight: 1 }] }
    })
    const rules = [
      { weighted_upstreams: [{ upstream: { nodes: { [b.address]: 1 } }, weight: 3 }, { weight: 1 }] }
    ]
    await apisix.admin('PUT', 'routes/split', {
      uri: '/split',
      upstream_id: 'u',
      plugins: { 'traffic-split': { rules } }
    })
    const body = async (path: string): Promise<string> => (await send(apisix.gateway.urls.proxy + path)).body
    expect([await body('/service/x'), await body('/inline'), await body('/other')]).to.deep.equal([
      c.address,
      b.address,
      a.address
    ])
    const split: string[] = []
    for (let n = 0; n < 8; n += 1) split.push(await body('/split'))
    expect(split.filter(one => one === b.address).length).to.equal(6)
    expect(split.filter(one => one === a.address).length).to.equal(2)
  })

  it('ends the request to the node when the client disconnects, and records 499', async () => {
    let ended = false
    const node = all.add(
      await httpNode((_, response) => {
        response.once('close', () => (ended = true))
      })
    )
    await apisix.route({ [node.address]: 1 })
    const agent = new Agent()
    const gone = send(url(), { agent }).catch(() => 'gone')
    await eventually(() => node.seen.length === 1)
    expect(apisix.gateway.barrier?.inflight.of('127.0.0.1', node.port)).to.deep.equal({
      requests: 1,
      long: 0
    })
    agent.destroy()
    await gone
    await eventually(() => ended && apisix.facts.length === 1)
    expect(apisix.facts[0]?.status).to.equal(499)
    expect(apisix.gateway.barrier?.inflight.of('127.0.0.1', node.port)).to.deep.equal({
      requests: 0,
      long: 0
    })
  })
})

const PAGE_503 =
  '<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n' +
  '<center><h1>503 Service Temporarily Unavailable</h1></center>\r\n<hr><center>openresty</center>\r\n</body>\r\n</html>\r\n'
