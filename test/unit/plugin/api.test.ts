import { once } from 'node:events'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { expect } from 'chai'
import {
  deadAddress,
  eventually,
  httpNode,
  opened,
  send,
  testGateway,
  TOKEN,
  type TestGateway
} from '../sandbox/apisix/fixture.ts'
import { ranMs, until } from '../../build/apisix.ts'

interface ToldEntry {
  uid: string
  ip: string
  port?: number
  state: string
  ttl: number
  inflight: { requests: number; long: number }
  bypasses: number
  sealedFor?: number
  idleFor?: number
  word?: unknown
  error?: string
}

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
  const told = (answer: { body: Record<string, unknown> }): ToldEntry[] =>
    answer.body['entries'] as ToldEntry[]
  const state = async () => (await apisix.barrier('GET', 'state')).body

  it('returns each entry as it is after the write, in the order of the request', async () => {
    const answer = await put(
      entry({ uid: 'b', port: 80 }),
      entry({ uid: 'a', ip: '0:0::1', state: 'sealed' })
    )
    expect(answer.status).to.equal(200)
    expect(answer.body['fit']).to.equal(true)
    expect(answer.body['instance']).to.equal(apisix.gateway.barrier?.instance)
    const plain = ({ sealedFor: _s, idleFor: _i, word: _w, ...one }: ToldEntry) => ({
      ...one,
      ttl: 'about 60'
    })
    expect(told(answer).map(plain)).to.deep.equal([
      {
        ttl: 'about 60',
        uid: 'b',
        ip: '127.0.0.1',
        port: 80,
        state: 'draining',
        inflight: { requests: 0, long: 0 },
        bypasses: 0,
        late: 0
      },
      {
        ttl: 'about 60',
        uid: 'a',
        ip: '::1',
        state: 'sealed',
        inflight: { requests: 0, long: 0 },
        bypasses: 0,
        late: 0
      }
    ])
    expect(told(answer)[0]).to.not.have.any.keys('sealedFor', 'idleFor')
    expect(told(answer)[1]).to.include.keys('sealedFor', 'idleFor')
    expect(told(answer)[0]?.ttl).to.be.within(59, 60)
  })

  it('does not reopen a sealed entry by a draining put; a removal does', async () => {
    await put(entry({ state: 'sealed' }))
    expect(told(await put(entry({ ttl: 100 })))[0]?.state).to.equal('sealed')
    expect(
      (await apisix.barrier('DELETE', 'entries', { uids: ['pod-a', 'nobody'] })).body['removed']
    ).to.equal(1)
    expect(told(await put(entry()))[0]?.state).to.equal('draining')
  })

  it('avoids an address while any entry covers it', async () => {
    await put(entry({ uid: 'old' }), entry({ uid: 'new', port: 80 }))
    const look = (port: number) => apisix.gateway.barrier?.entries.look('127.0.0.1', port)
    await apisix.barrier('DELETE', 'entries', { uids: ['old'] })
    expect([look(80), look(81)]).to.deep.equal(['draining', 'free'])
    await apisix.barrier('DELETE', 'entries', { uids: ['new'] })
    expect(look(80)).to.equal('free')
  })

  it('lets an entry expire', async () => {
    apisix.gateway.barrier?.entries.put({
      uid: 'pod-a',
      ip: '127.0.0.1',
      port: undefined,
      state: 'sealed',
      ttl: 1
    })
    expect(apisix.gateway.barrier?.entries.look('127.0.0.1', 80)).to.equal('sealed')
    await eventually(() => apisix.gateway.barrier?.entries.look('127.0.0.1', 80) === 'free')
    expect((await state())['entries']).to.deep.equal([])
  })

  it('bypasses the entry if nothing else can be picked, and counts it; refuses if only sealed nodes are left', async () => {
    const node = all.add(await httpNode())
    await apisix.route({ [node.address]: 1 })
    await put(entry())
    expect((await send(`${apisix.gateway.urls.proxy}/`)).status).to.equal(200)
    expect(told(await put(entry({ state: 'sealed' })))[0]).to.include({ state: 'sealed', bypasses: 1 })
    expect((await send(`${apisix.gateway.urls.proxy}/`)).status).to.equal(503)
    expect((await state())['counts']).to.deep.equal({
      moved: 0,
      bypasses: 1,
      refused: 1,
      errors: 0,
      succeeded: 0
    })
    expect(node.seen.length).to.equal(1)
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
    await eventually(() => apisix.facts.length === 12)
    expect(apisix.gateway.barrier?.inflight.of('127.0.0.1', undefined)).to.deep.equal({
      requests: 0,
      long: 0
    })
  })

  describe('in flight', () => {
    const finish: (() => void)[] = []
    const slowNode = () => httpNode((_, response) => finish.push(() => response.end('done')))
    const ask = (wait: number, uids = ['pod-a']) => apisix.barrier('POST', 'inflight', { uids, wait })

    it('answers as soon as it reaches 0', async () => {
      const node = all.add(await slowNode())
      await apisix.route({ [node.address]: 1 })
      const request = send(`${apisix.gateway.urls.proxy}/`)
      await eventually(() => finish.length === 1)
      expect(told(await put(entry()))[0]?.inflight).to.deep.equal({ requests: 1, long: 0 })
      let answered = false
      const poll = ask(5).then(answer => {
        answered = true
        return answer
      })
      expect(told(await ask(0))[0]?.inflight.requests).to.equal(1)
      expect(answered).to.equal(false)
      finish.pop()?.()
      expect(told(await poll)[0]?.inflight).to.deep.equal({ requests: 0, long: 0 })
      expect((await request).body).to.equal('done')
    })

    it('answers when the wait is over', async () => {
      const node = all.add(await slowNode())
      await apisix.route({ [node.address]: 1 })
      const request = send(`${apisix.gateway.urls.proxy}/`)
      await eventually(() => finish.length === 1)
      await put(entry())
      const began = performance.now()
      expect(told(await ask(0.05))[0]?.inflight.requests).to.equal(1)
      expect(performance.now() - began).to.be.at.least(48)
      expect(ranMs(began)).to.be.below(1000)
      finish.pop()?.()
      await request
    })

    it('names unknown uids, and does not wait for them', async () => {
      const answer = await ask(10, ['nobody'])
      expect([answer.body['entries'], answer.body['unknown']]).to.deep.equal([[], ['nobody']])
    })

    it('tries another node if one refuses an upgraded connection', async () => {
      const node = all.add(await httpNode())
      node.server.on('upgrade', (_, socket) => {
        socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello')
        socket.on('error', () => {})
      })
      await apisix.route({ [node.address]: 1, [await deadAddress()]: 1 })
      for (let n = 0; n < 4; n += 1) {
        const client = await upgrade(apisix.gateway.urls.proxy)
        await once(client.resume(), 'close')
      }
      await until('four facts', () => apisix.facts.length === 4)
      expect(apisix.facts.map(({ status }) => status)).to.deep.equal([101, 101, 101, 101])
      expect(
        apisix.facts.some(({ nodes }) => nodes.length === 2),
        'the refusing node was tried'
      ).to.equal(true)
    })

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
  })

  const bad: [string, unknown][] = [
    ['entries missing', {}],
    ['no uid', { entries: [entry({ uid: '' })] }],
    ['ip in brackets', { entries: [entry({ ip: '[::1]' })] }],
    ['ip is a name', { entries: [entry({ ip: 'localhost' })] }],
    ['port 0', { entries: [entry({ port: 0 })] }],
    ['port as a text', { entries: [entry({ port: '80' })] }],
    ['state unknown', { entries: [entry({ state: 'open' })] }],
    ['ttl 0', { entries: [entry({ ttl: 0 })] }],
    ['ttl above an hour', { entries: [entry({ ttl: 3601 })] }],
    ['more than 1000', { entries: Array.from({ length: 1001 }, () => entry()) }]
  ]
  for (const [name, body] of bad)
    it(`refuses bad input, storing nothing: ${name}`, async () => {
      const answer = await apisix.barrier('PUT', 'entries', body)
      expect(answer.status).to.equal(400)
      expect(answer.body['error_msg']).to.be.a('string').with.length.greaterThan(5)
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

  it("keeps off the shortcut of APISIX's plugin ai; a worker that takes it is unfit", async () => {
    const node = all.add(await httpNode())
    const upstream = { type: 'roundrobin', nodes: { [node.address]: 1 } }
    const statusAfterChange = async () => {
      await apisix.admin('PUT', 'routes/r', { uri: '/*', upstream })
      const { workers } = apisix.gateway
      await eventually(() => workers.every(({ config }) => config.revision === apisix.store.revision))
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
