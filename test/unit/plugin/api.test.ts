import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { expect } from 'chai'
import { readSecret } from '../../../agent/hook/app.ts'
import { httpNode, opened, send, testGateway, TOKEN, type TestGateway } from '../sandbox/apisix/fixture.ts'
import { until } from '../../build/apisix.ts'
import type { EntryOut } from '../../plugin/barrier.ts'

const entry = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  uid: 'pod-a',
  ip: '127.0.0.1',
  state: 'draining',
  ttl: 60,
  ...more
})

describe('the Barrier API, in the VM', () => {
  const all = opened()
  let apisix: TestGateway

  beforeEach(async () => {
    apisix = all.add(await testGateway())
  })
  afterEach(() => all.close())

  const put = (...entries: Record<string, unknown>[]) => apisix.barrier('PUT', 'entries', { entries })
  const told = (answer: { body: Record<string, unknown> }): EntryOut[] => answer.body['entries'] as EntryOut[]

  it('lets an entry expire', async () => {
    apisix.gateway.barrier?.entries.put({
      uid: 'pod-a',
      ip: '127.0.0.1',
      port: undefined,
      state: 'sealed',
      ttl: 1
    })
    expect(apisix.gateway.barrier?.entries.look('127.0.0.1', 80)).to.equal('sealed')
    await until('it ended', () => apisix.gateway.barrier?.entries.look('127.0.0.1', 80) === 'free')
    expect((await apisix.barrier('GET', 'state')).body['entries']).to.deep.equal([])
  })

  it('avoids a denied node on retries too', async () => {
    const [bad, denied, good] = [
      all.add(await httpNode(incoming => incoming.socket.resetAndDestroy())),
      all.add(await httpNode()),
      all.add(await httpNode())
    ]
    await apisix.route({ [bad.address]: 1, [denied.address]: 1, [good.address]: 1 })
    await put(entry({ port: denied.port }))
    for (let n = 0; n < 12; n += 1)
      expect((await send(`${apisix.gateway.urls.proxy}/`)).body).to.equal(good.address)
    expect([bad.seen.length > 0, denied.seen.length]).to.deep.equal([true, 0])
    await until('twelve facts', () => apisix.facts.length === 12)
    expect(apisix.gateway.barrier?.inflight.of('127.0.0.1', undefined)).to.deep.equal({
      requests: 0,
      long: 0
    })
  })

  const ask = (wait: number, uids = ['pod-a']) => apisix.barrier('POST', 'inflight', { uids, wait })

  it('counts an upgraded connection as long-lived, until it closes', async () => {
    const node = all.add(await httpNode())
    node.server.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
      socket.pipe(socket)
      socket.on('error', () => {})
    })
    await apisix.route({ [node.address]: 1 })
    const client = await upgrade(apisix.gateway.urls.proxy)
    await put(entry())
    expect(told(await ask(0))[0]?.inflight).to.include({ requests: 0, long: 1, upgraded: 1 })
    expect(told(await ask(5))[0]?.inflight.long).to.equal(1)
    client.write('ping')
    const [echo] = (await once(client, 'data')) as [Buffer]
    expect(echo.toString()).to.equal('ping')
    client.destroy()
    await until('it is closed', async () => told(await ask(0))[0]?.inflight.long === 0)
  })

  it('waits no longer than it is asked to, and not for unknown uids', async () => {
    let finish = () => {}
    const node = all.add(await httpNode((_, response) => (finish = () => response.end())))
    await apisix.route({ [node.address]: 1 })
    const request = send(`${apisix.gateway.urls.proxy}/`)
    await until('the node has it', () => node.seen.length === 1)
    await put(entry())
    const began = performance.now()
    expect(told(await ask(0.05))[0]?.inflight.requests).to.equal(1)
    expect(performance.now() - began).to.be.at.least(48)
    finish()
    await request
    expect((await ask(10_000, ['nobody'])).status).to.equal(400)
    expect((await ask(30, ['nobody'])).body).to.deep.include({ entries: [], unknown: ['nobody'] })
  })

  it('refuses bad input, storing nothing', async () => {
    for (const bad of [entry({ ip: 'localhost' }), entry({ ttl: 3601 })])
      expect((await put(bad)).status).to.equal(400)
    expect(apisix.gateway.barrier?.entries.size).to.equal(0)
  })

  it('refuses bodies that are not JSON, other paths and methods, long bodies, and a wrong token', async () => {
    const at = (path: string, method: string, body?: string, token = TOKEN) =>
      send(`${apisix.gateway.urls.barrier}/v1/barrier/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body })
      })
    const replies = [
      await at('entries', 'PUT', '{'),
      await at('nothing', 'GET'),
      await at('state', 'PUT'),
      await at('entries', 'PUT', ' '.repeat(1024 * 1024 + 1)),
      await at('state', 'GET', undefined, 'wrong')
    ]
    expect(replies.map(({ status }) => status)).to.deep.equal([400, 404, 405, 413, 401])
    for (const { body } of replies) expect(JSON.parse(body)).to.have.property('error_msg')
  })

  it('fetches the current entries at its start, and is ready only then', async () => {
    let release = (): void => {}
    const tokens: (string | undefined)[] = []
    const agent = createServer((incoming, response) => {
      tokens.push(incoming.headers.authorization)
      release = () => response.end(JSON.stringify({ entries: [entry()] }))
    })
    await new Promise<void>(resolve => agent.listen(0, '127.0.0.1', resolve))
    all.add({ close: () => agent.close() })
    const { port } = agent.address() as { port: number }
    const fetchEntries = { url: `http://127.0.0.1:${port}`, timeoutMs: 5000 }
    const starting = all.add(await testGateway({ fetchEntries }))
    const ready = () => starting.barrier('GET', 'ready')
    await until('the worker asked', () => tokens.length === 1)
    expect((await ready()).status).to.equal(503)
    release()
    await until('it waits for the agents', async () => /may not know/.test(JSON.stringify(await ready())))
    await until('it answers', async () => (await ready()).status === 200)
    expect(starting.gateway.barrier?.entries.look('127.0.0.1', 80)).to.equal('draining')
    expect(tokens).to.deep.equal([`Bearer ${readSecret(TOKEN)}`])
  })

  it("keeps off the shortcut of APISIX's plugin ai; a worker that takes it is unfit", async () => {
    const node = all.add(await httpNode())
    const upstream = { type: 'roundrobin', nodes: { [node.address]: 1 } }
    const statusAfterChange = async () => {
      await apisix.admin('PUT', 'routes/r', { uri: '/*', upstream })
      const { workers } = apisix.gateway
      await until('applied', () => workers.every(({ config }) => config.revision === apisix.store.revision))
      return (await send(`${apisix.gateway.urls.proxy}/`)).status
    }
    const unfit = async () => String((await apisix.barrier('GET', 'state')).body['unfit'])
    expect(await statusAfterChange()).to.equal(200)
    await put(entry({ port: node.port, state: 'sealed' }))
    expect(await statusAfterChange()).to.equal(503)
    expect(await unfit()).to.equal('')
    apisix.gateway.barrier!.run(`
      local event, i, name, own = require("apisix.core.event"), 0
      repeat i = i + 1; name, own = debug.getupvalue(event.push, i) until name == "own"
      event.push = own.push`)
    expect(await statusAfterChange()).to.equal(200)
    expect(await unfit()).to.not.equal('')
    expect(apisix.gateway.log.join()).to.contain(
      `unfit: a request went to ${node.address} past the barrier: apisix.plugins.ai connected it`
    )
  })
})

const upgrade = async (url: string): Promise<Duplex> => {
  const outgoing = request(url, { agent: false, headers: { connection: 'Upgrade', upgrade: 'echo' } })
  outgoing.end()
  const [, socket] = (await once(outgoing, 'upgrade')) as [unknown, Duplex]
  return socket
}
