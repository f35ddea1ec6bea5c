import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { WebSocket } from 'ws'
import type { Secret } from '../../../../agent/config/config.ts'
import { buildSnapshot } from '../../../../agent/report/show/build-snapshot.ts'
import { createGuard, SESSION_COOKIE, SESSION_SECONDS } from '../../../../agent/report/page/guard.ts'
import type { Snapshot } from '../../../../agent/report/snapshot/snapshot.ts'
import { createStream, type Stream, type StreamLimits } from '../../../../agent/report/page/stream.ts'
import { endAll, type Ends } from '../../../../sandbox/ends.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'
import { sources } from '../../../build/snapshot.ts'

describe('stream', () => {
  const open: Ends = []
  afterEach(() => endAll(open))

  const plain = (snapshot: Snapshot) => JSON.parse(JSON.stringify(snapshot)) as Snapshot
  const QUIET = plain(buildSnapshot(sources()))

  async function setUp(limits: Partial<StreamLimits> = {}) {
    const clock = manualClock()
    const { log, lines } = memoryLog()
    const server: Server = createServer((_, response) => response.end('plain'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const state: { snapshot: Snapshot | undefined; made: number } = { snapshot: QUIET, made: 0 }
    const secret = { value: 't0ken' }
    const token: Secret = {
      source: 'test',
      read: () => secret.value,
      toJSON: () => 'test',
      toString: () => 'test'
    }
    const guard = createGuard({ kind: 'token', token }, clock)
    const stream: Stream = createStream({
      server,
      guard,
      snapshot: () => ((state.made += 1), state.snapshot),
      clock,
      log,
      limits
    })
    open.push(() => {
      server.closeAllConnections()
      server.close()
    })
    const dial = (headers: Record<string, string> = {}, path = '/api/stream') => {
      const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
        headers: { authorization: 'Bearer t0ken', ...headers }
      })
      client.on('error', () => {})
      open.push(() => client.terminate())
      return client
    }
    /** Returns the status with which the client was refused, or 101 if it was accepted. */
    const status = async (client: WebSocket) => {
      const { promise, resolve } = Promise.withResolvers<number>()
      client.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
      client.on('open', () => resolve(101))
      return promise
    }
    return { clock, guard, lines, port, secret, state, stream, dial, status }
  }

  /** Returns all messages so far, and a function for the next unread message. */
  function listenTo(client: WebSocket) {
    const messages: Snapshot[] = []
    const waiting: ((message: Snapshot) => void)[] = []
    client.on('message', data => {
      const message = JSON.parse((data as Buffer).toString()) as Snapshot
      const taker = waiting.shift()
      if (taker) taker(message)
      else messages.push(message)
    })
    return {
      messages,
      next: () => {
        const known = messages.shift()
        return known ? Promise.resolve(known) : new Promise<Snapshot>(resolve => waiting.push(resolve))
      }
    }
  }

  it('sends whole snapshots', async () => {
    const { clock, state, stream, dial } = await setUp()
    const heard = listenTo(dial())
    expect(await heard.next()).to.deep.equal(QUIET)
    const next = (state.snapshot = { ...QUIET, at: QUIET.at + 5 })
    stream.poke()
    clock.advance(1000)
    expect(await heard.next()).to.deep.equal(next)
  })

  it('sends at most once a second, however often it is triggered', async () => {
    const { clock, state, stream, dial } = await setUp()
    const heard = listenTo(dial())
    await heard.next()
    state.made = 0
    for (let ms = 0; ms < 10_000; ms++) {
      stream.poke()
      clock.advance(1)
    }
    expect(state.made).to.be.within(9, 11)
    for (let i = 0; i < 9; i++) await heard.next()
  })

  it('costs nothing without a client', async () => {
    const { clock, state, stream, dial } = await setUp()
    stream.poke()
    clock.advance(1000)
    expect(state.made).to.equal(0)
    const client = dial()
    await listenTo(client).next()
    client.close()
    await once(client, 'close')
    while (stream.clients() > 0) await new Promise(resolve => setImmediate(resolve))
    const { made } = state
    stream.poke()
    clock.advance(60_000)
    expect(state.made).to.equal(made)
    expect(clock.pending).to.equal(0)
  })

  it('refuses unknown clients, foreign pages, other paths, and too many clients', async () => {
    const { state, dial, status } = await setUp({ maxClients: 1 })
    expect(await status(dial({ authorization: 'Bearer guess' }))).to.equal(401)
    expect(await status(dial({ origin: 'http://evil.example' }))).to.equal(403)
    expect(await status(dial({}, '/api/state'))).to.equal(404)
    state.snapshot = undefined
    expect(await status(dial())).to.equal(503)
    state.snapshot = QUIET
    expect(await status(dial())).to.equal(101)
    expect(await status(dial())).to.equal(503)
  })

  it('closes the connection of a refused client that stays (S10)', async () => {
    const { port } = await setUp()
    const stays = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const upgrade = 'connection: upgrade\r\nupgrade: websocket'
    stays.write(`GET /api/stream HTTP/1.1\r\nhost: x\r\n${upgrade}\r\n\r\n`)
    stays.resume()
    await once(stays, 'end')
    // A connection of which only one half was closed would take this.
    const lost = once(stays, 'error')
    const timer = setInterval(() => stays.write('still here'), 5)
    expect(((await lost) as [NodeJS.ErrnoException])[0].code).to.match(/ECONNRESET|EPIPE/)
    clearInterval(timer)
  })

  it('sends nothing more to a client that does not read, and serves the others', async () => {
    const { clock, state, stream, port, dial } = await setUp({ pingMs: 1e9 })
    const heard = listenTo(dial())
    await heard.next()
    // This client reads nothing after its handshake.
    const deaf = connect(port, '127.0.0.1')
    open.push(() => deaf.destroy())
    deaf.on('error', () => {})
    deaf.write(
      'GET /api/stream HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
        'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nauthorization: Bearer t0ken\r\n\r\n'
    )
    while (stream.clients() < 2) await new Promise(resolve => setImmediate(resolve))
    deaf.pause()
    const problem = 'x'.repeat(3_000_000)
    for (let i = 0; i < 40; i++) {
      state.snapshot = { ...QUIET, at: i, inventory: { ...QUIET.inventory, problem } }
      stream.poke()
      clock.advance(1000)
      expect((await heard.next()).at).to.equal(i)
    }
    let got = 0
    const back = new AbortController()
    deaf.on('data', data => {
      got += data.length
      if (data.includes('"at":-1,')) back.abort()
    })
    deaf.resume()
    state.snapshot = { ...QUIET, at: -1 }
    while (!back.signal.aborted) {
      stream.poke()
      clock.advance(1000)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(got).to.be.below(40_000_000)
  })

  it('drops a client that does not answer a ping', async () => {
    const { clock, lines, stream, dial } = await setUp({ pingMs: 10_000 })
    const client = dial()
    await listenTo(client).next()
    const pinged = once(client, 'ping')
    clock.advance(10_000)
    await pinged
    // Once the answer to this later ping has come, the earlier answer has arrived too. So the client stays.
    client.ping()
    await once(client, 'pong')
    clock.advance(10_000)
    expect(stream.clients()).to.equal(1)
    // The client has no time to answer the last ping, so it is dropped.
    clock.advance(10_000)
    expect(stream.clients()).to.equal(0)
    expect(lines.map(line => line['why'])).to.deep.equal(['it did not answer a ping'])
  })

  const ENDED = ['its token was rotated, or its session has expired']

  it('ends the streams of a token that was rotated (D11)', async () => {
    const { clock, guard, lines, secret, stream, dial } = await setUp({ pingMs: 10_000 })
    const session = { authorization: '', cookie: `${SESSION_COOKIE}=${guard.login('t0ken')}` }
    const clients = [dial(), dial(session)]
    for (const client of clients) await listenTo(client).next()
    const gone = clients.map(client => once(client, 'close'))
    secret.value = 'another'
    const fresh = dial({ authorization: 'Bearer another' })
    await listenTo(fresh).next()
    clock.advance(10_000)
    await Promise.all(gone)
    expect(stream.clients()).to.equal(1)
    expect(lines.map(line => line['why'])).to.deep.equal([...ENDED, ...ENDED])
  })

  it('ends the stream of a session that expires (D11)', async () => {
    const { clock, guard, lines, stream, dial } = await setUp({ pingMs: SESSION_SECONDS * 1000 })
    const client = dial({ authorization: '', cookie: `${SESSION_COOKIE}=${guard.login('t0ken')}` })
    await listenTo(client).next()
    const gone = once(client, 'close')
    clock.advance(SESSION_SECONDS * 1000)
    await gone
    expect(stream.clients()).to.equal(0)
    expect(lines.map(line => line['why'])).to.deep.equal(ENDED)
  })

  it('disconnects a client that sends too much', async () => {
    const { stream, dial } = await setUp()
    const client = dial()
    await listenTo(client).next()
    client.send('x'.repeat(5000))
    await once(client, 'close')
    while (stream.clients() > 0) await new Promise(resolve => setImmediate(resolve))
  })

  it('closes the connection properly when the agent stops', async () => {
    const { stream, dial, status } = await setUp()
    const client = dial()
    await listenTo(client).next()
    const closed = once(client, 'close') as Promise<[number, Buffer]>
    await stream.close()
    const [code] = await closed
    expect(code).to.equal(1001)
    expect(await status(dial())).to.equal(503)
  })
})
