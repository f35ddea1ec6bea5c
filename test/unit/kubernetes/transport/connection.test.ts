import { expect } from 'chai'
import { once } from 'node:events'
import { createServer as createH2c, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { systemClock } from '../../../../agent/base/clock.ts'
import {
  createConnection,
  type Connection,
  type ConnectionSettings
} from '../../../../agent/kubernetes/transport/connection.ts'
import { ranMs, until } from '../../../build/apisix.ts'
import { countingClock } from '../../../build/counting-clock.ts'

type Answer = (stream: ServerHttp2Stream, path: string, headers: Readonly<Record<string, unknown>>) => void

/** Faults of an HTTP/2 server that the stand-in for the API server does not have. */
describe('watch: the connection', () => {
  const servers: (Server | Http2Server)[] = []
  const connections: Connection[] = []
  afterEach(async () => {
    await Promise.all(connections.splice(0).map(connection => connection.close()))
    await Promise.all(servers.splice(0).map(server => new Promise(resolve => server.close(resolve))))
  })

  const listen = async (server: Server | Http2Server) => {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const connectTo = (origin: string, settings: Partial<ConnectionSettings> = {}, clock = systemClock) => {
    let refusals = 0
    const credentials = {
      origin,
      tls: () => Promise.resolve({}),
      headers: () => Promise.resolve({ authorization: 'Bearer t' }),
      refused: () => void (refusals += 1)
    }
    const connection = createConnection(credentials, clock, settings)
    connections.push(connection)
    return { connection, refusals: () => refusals }
  }
  const serve = async (answer: Answer, settings: Partial<ConnectionSettings> = {}) => {
    let sessions = 0
    const server = createH2c()
    server.on('session', () => (sessions += 1))
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      answer(stream, headers[':path'] ?? '', headers)
    })
    return { ...connectTo(await listen(server), settings), sessions: () => sessions }
  }
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => 'no failure',
      (error: Error) => error.message
    )
  const streamAll = async (connection: Connection, signal = new AbortController().signal) => {
    const lines: string[] = []
    let opened = 0
    const onOpen = () => void (opened += 1)
    const work = connection.stream('/watch', { onOpen, onLine: line => lines.push(line.toString()) }, signal)
    return { lines, opened: () => opened, failure: await failureOf(work) }
  }

  it('sends our credentials, and a body with its type', async () => {
    const seen: unknown[] = []
    const { connection, sessions } = await serve((stream, path, headers) => {
      const { authorization, accept, 'content-type': type } = headers
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        seen.push({ path, authorization, accept, type, body: Buffer.concat(chunks).toString() })
        stream.respond({ ':status': 201 })
        stream.end('{"ok":true}')
      })
    })
    expect(await connection.request('POST', '/a?b=c', { x: 1 })).to.include({ status: 201 })
    expect((await connection.request('PUT', '/p', { x: 2 })).json).to.deep.equal({ ok: true })
    const common = { authorization: 'Bearer t', accept: 'application/json' }
    expect(seen).to.deep.equal([
      { ...common, path: '/a?b=c', type: 'application/json', body: '{"x":1}' },
      { ...common, path: '/p', type: 'application/json', body: '{"x":2}' }
    ])
    expect(sessions()).to.equal(1)
  })

  it('returns any status as an answer, with its Retry-After; HTML is not JSON', async () => {
    const { connection, refusals } = await serve((stream, path) => {
      const status = Number(path.slice(1))
      stream.respond({ ':status': status, 'retry-after': '2' })
      stream.end(status === 204 ? undefined : '<html>')
    })
    const { status, json, retryAfterMs } = await connection.request('GET', '/503')
    expect({ status, json, retryAfterMs }).to.deep.equal({
      status: 503,
      json: undefined,
      retryAfterMs: 2_000
    })
    expect((await connection.request('GET', '/204')).json).to.equal(undefined)
    expect(await failureOf(connection.request('GET', '/200'))).to.equal(
      'GET /200: 200 with a body that is not JSON'
    )
    expect(refusals()).to.equal(0)
    await connection.request('GET', '/401')
    expect(refusals()).to.equal(1)
  })

  it('does not wait for an answer beyond its timeout or the abort signal', async () => {
    const { connection } = await serve(() => {}, { requestTimeoutMs: 50 })
    expect(await failureOf(connection.request('GET', '/x'))).to.equal('GET /x: no answer within 50 ms')
    const gone = connection.request('GET', '/x', undefined, AbortSignal.timeout(10))
    expect(await failureOf(gone)).to.match(/timeout/)
    const before = connection.request('GET', '/x', undefined, AbortSignal.abort(new Error('no')))
    expect(await failureOf(before)).to.equal('no')
  })

  it('does not wait for a connection beyond its timeout', async () => {
    // This server accepts connections, and never speaks HTTP/2.
    const origin = await listen(createServer(socket => void socket.on('error', () => {}).resume()))
    const { connection } = connectTo(origin, { connectTimeoutMs: 50, pingEveryMs: 10, pingTimeoutMs: 50 })
    const began = performance.now()
    expect(await failureOf(connection.request('GET', '/x'))).to.match(
      /no answer to a ping|within 50 ms|closed/
    )
    expect(ranMs(began)).to.be.lessThan(1_000)
  })

  it('reports a refused connection, and tries again with the next request', async () => {
    const server = createServer()
    const origin = await listen(server)
    await new Promise(resolve => server.close(resolve))
    servers.length = 0
    const { connection } = connectTo(origin)
    expect(await failureOf(connection.request('GET', '/x'))).to.match(/ECONNREFUSED/)
    const late = createH2c((_, response) => response.end('{}'))
    servers.push(late)
    late.listen(Number(new URL(origin).port), '127.0.0.1')
    await once(late, 'listening')
    expect((await connection.request('GET', '/x')).status).to.equal(200)
  })

  it('streams lines; a regular end is not a failure', async () => {
    const { connection } = await serve(stream => {
      stream.respond({ ':status': 200 })
      stream.write('a\nb')
      stream.end('c\nd\n')
    })
    const { lines, opened, failure } = await streamAll(connection)
    expect(lines).to.deep.equal(['a', 'bc', 'd'])
    expect(opened()).to.equal(1)
    expect(failure).to.equal('no failure')
  })

  it('a refused stream gives the reason, and never opens', async () => {
    const { connection, refusals } = await serve(stream => {
      stream.respond({ ':status': 401 })
      stream.write('{"reason":"Unauthorized",')
      stream.end('"message":"who?"}')
    })
    const { opened, failure } = await streamAll(connection)
    expect(failure).to.equal('GET /watch: 401 Unauthorized who?')
    expect([opened(), refusals()]).to.deep.equal([0, 1])
  })

  it('a stream that is reset is a failure', async () => {
    const reset = await serve(stream => {
      stream.respond({ ':status': 200 })
      stream.write('a\n', () => stream.destroy(new Error('broken')))
    })
    expect((await streamAll(reset.connection)).failure).to.match(/NGHTTP2_INTERNAL_ERROR|cut/)
  })

  it('a handler that throws ends its stream and nothing else', async () => {
    const { connection, sessions } = await serve(stream => {
      stream.respond({ ':status': 200 })
      stream.write('a\nb\n')
    })
    const never = new AbortController().signal
    const onLine = () => {
      throw new Error('not for me')
    }
    expect(await failureOf(connection.stream('/w', { onOpen() {}, onLine }, never))).to.equal('not for me')
    const other = new AbortController()
    const work = connection.stream(
      '/w',
      { onOpen() {}, onLine: () => other.abort(new Error('enough')) },
      other.signal
    )
    expect(await failureOf(work)).to.equal('enough')
    expect(sessions()).to.equal(1)
  })

  it('moves to a new session at GOAWAY, while open requests finish on the old one', async () => {
    let held: ServerHttp2Stream | undefined
    const { connection, sessions } = await serve((stream, path) => {
      stream.respond({ ':status': 200 })
      if (path === '/slow') held = stream
      else if (path === '/watch') stream.write('a\n')
      else if (path === '/leave') stream.end('{}', () => stream.session?.goaway(0, 2 ** 31 - 1))
      else stream.end('{}')
    })
    const slow = connection.request('GET', '/slow')
    await until('the slow one is there', () => held !== undefined)
    const watching = streamAll(connection)
    await connection.request('GET', '/leave')
    expect((await watching).failure).to.equal('no failure')
    await connection.request('GET', '/x')
    expect(sessions()).to.equal(2)
    held?.end('{"late":true}')
    expect((await slow).json).to.deep.equal({ late: true })
  })

  it('closing ends open requests and connection attempts, and leaves no timer', async () => {
    const clock = countingClock()
    const silent = await listen(createServer(socket => void socket.on('error', () => {}).resume()))
    const { connection } = connectTo(silent, {}, clock)
    const request = failureOf(connection.request('GET', '/x'))
    await new Promise(resolve => setImmediate(resolve))
    await connection.close()
    expect(await request).to.equal('the connection to the API server was closed by us')
    expect(clock.pending).to.equal(0)
  })
})
