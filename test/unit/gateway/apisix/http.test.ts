import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createNet, type AddressInfo, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { CodedError } from '../../../../agent/base/errors.ts'
import { networkMeaning } from '../../../../agent/config/config.ts'
import { until } from '../../../build/apisix.ts'
import { createHttp } from '../../../../agent/gateway/apisix/http.ts'

describe('calls to the Barrier API', () => {
  const ends: (() => void)[] = []
  let http: ReturnType<typeof createHttp>
  let connections = 0
  afterEach(() => {
    for (const end of ends.splice(0)) end()
  })

  const serve = async (answer: (request: IncomingMessage, response: ServerResponse) => void) => {
    connections = 0
    http = createHttp({ api: 'BARRIER', keepAlive: true, maxBytes: 1000 })
    const server = createServer(answer).on('connection', () => (connections += 1))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    ends.push(
      () => http.close(),
      () => server.close(),
      () => server.closeAllConnections()
    )
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/barrier/entries`
  }
  const put = (url: string, more: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
    http.json({ method: 'PUT', url, body: { entries: ['ö'] }, timeoutMs: 20_000, ...more })
  const failure = async (work: Promise<unknown>): Promise<CodedError> => {
    const error = await work.catch((error: unknown) => error)
    expect(error).to.be.instanceOf(CodedError)
    return error as CodedError
  }

  it('send JSON and keep the connection', async () => {
    const url = await serve((request, response) => {
      void (async () => {
        const chunks: Buffer[] = []
        for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
        response.end(JSON.stringify({ method: request.method, body: Buffer.concat(chunks).toString() }))
      })()
    })
    const expected = { method: 'PUT', body: '{"entries":["ö"]}' }
    expect(await put(url)).to.deep.equal(expected)
    expect(await put(url)).to.deep.equal(expected)
    expect(connections).to.equal(1)
  })

  it('follow no redirect: any other reply is a failure that quotes the reply', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: '/other' }).end())
    expect((await failure(put(url))).status).to.equal(302)
    const denied = await serve((_, response) => response.writeHead(401).end('{"error_msg":"no"}'))
    expect(await failure(put(denied))).to.include({ code: 'BARRIER_DENIED', serverMessage: 'no' })
  })

  it('report a refused connection and an answer that was cut off', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '500' }).write('{"fit":')
      response.flushHeaders()
      setImmediate(() => response.destroy())
    })
    expect((await failure(put(url))).code).to.equal('BARRIER_UNREACHABLE')
    for (const end of ends.splice(1)) end()
    const refused = await failure(put(url))
    expect(refused.code).to.equal('BARRIER_UNREACHABLE')
    expect(refused.message).to.contain('ECONNREFUSED')
  })

  it('give up if the answer is too slow, too long, or no longer wanted', async () => {
    const silent = await serve(() => {})
    expect((await failure(put(silent, { timeoutMs: 20 }))).code).to.equal('BARRIER_TIMEOUT')
    const signal = AbortSignal.abort()
    expect((await failure(put(silent, { signal }))).code).to.equal('ABORTED')
    const endless = await serve((_, response) => response.end('x'.repeat(1001)))
    expect((await failure(put(endless))).code).to.equal('BARRIER_TOO_LARGE')
  })

  it('get an answer that came in time, though this process could not run until later', async () => {
    const gateway = new Worker(
      `const { parentPort } = require('node:worker_threads')
      const server = require('node:http').createServer((_, response) => response.end('{"fit":true}'))
      server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
      { eval: true }
    )
    http = createHttp({ api: 'BARRIER', keepAlive: true, maxBytes: 1000 })
    ends.push(
      () => http.close(),
      () => void gateway.terminate()
    )
    const url = `http://127.0.0.1:${String(await once(gateway, 'message'))}`
    await put(url)
    const asked = put(url, { timeoutMs: 100 })
    await new Promise(resolve => setImmediate(resolve))
    // The gateway is a thread of its own, and answers meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
    expect(await asked).to.deep.equal({ fit: true })
  })

  const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
  /** Writes the text byte by byte, for ever. */
  const drip = (text: string) => (socket: Socket) => {
    let at = 0
    const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), 5)
    socket.once('close', () => clearInterval(timer))
  }
  const says = (text: string) => (socket: Socket) => void socket.write(text)
  const ANSWERS: Readonly<Record<string, readonly [(socket: Socket) => void, CodedError['code']]>> = {
    'an upgrade (101)': [
      says('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      'BARRIER_UNREACHABLE'
    ],
    'a 101 without an upgrade': [says('HTTP/1.1 101 Switching Protocols\r\n\r\n'), 'BARRIER_UNREACHABLE'],
    nothing: [() => {}, 'BARRIER_TIMEOUT'],
    'nothing, and the end': [socket => void socket.end(), 'BARRIER_UNREACHABLE'],
    'half of the headers': [says(HEAD), 'BARRIER_TIMEOUT'],
    'half of the headers, and the end': [socket => void socket.end(HEAD), 'BARRIER_UNREACHABLE'],
    'half of the body': [says(`${HEAD}content-length: 99\r\n\r\n{"fit":`), 'BARRIER_TIMEOUT'],
    'half of the body, and the end': [
      socket => void socket.end(`${HEAD}content-length: 99\r\n\r\n{"fit":`),
      'BARRIER_UNREACHABLE'
    ],
    'headers that come slowly': [drip(`${HEAD}x-more: more\r\n`), 'BARRIER_TIMEOUT'],
    'a body that comes slowly': [
      socket => (says(`${HEAD}content-length: 999\r\n\r\n`)(socket), drip(' ')(socket)),
      'BARRIER_TIMEOUT'
    ],
    'a body without an end': [
      socket => (says(`${HEAD}transfer-encoding: chunked\r\n\r\n`)(socket), drip('1\r\n \r\n')(socket)),
      'BARRIER_TIMEOUT'
    ],
    'a body over the limit': [
      says(`${HEAD}content-length: 5000\r\n\r\n${'x'.repeat(1001)}`),
      'BARRIER_TOO_LARGE'
    ],
    '1xx answers without an end': [drip('HTTP/1.1 103 Early Hints\r\n\r\n'), 'BARRIER_TIMEOUT'],
    'no HTTP': [says('SSH-2.0-OpenSSH_9\r\n'), 'BARRIER_UNREACHABLE']
  }
  for (const [what, [answer, code]] of Object.entries(ANSWERS))
    for (const fresh of [false, true])
      it(`settle when the server sends ${what}; ${fresh ? 'a new connection' : 'a kept one'}`, async () => {
        const open = new Set<Socket>()
        const server = createNet(socket => {
          open.add(socket)
          socket.on('error', () => {})
          socket.once('close', () => open.delete(socket))
          socket.once('data', () => answer(socket))
        }).listen(0, '127.0.0.1')
        await once(server, 'listening')
        http = createHttp({ api: 'BARRIER', keepAlive: true, maxBytes: 1000 })
        ends.push(
          () => http.close(),
          () => server.close(),
          () => open.forEach(socket => socket.destroy())
        )
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
        const timeoutMs = code === 'BARRIER_TIMEOUT' ? 150 : 20_000
        const error = await failure(http.json({ method: 'GET', url, timeoutMs, fresh }))
        expect(error.code).to.equal(code)
        await until('the connection is closed', () => open.size === 0)
      })

  it('name a lack of file descriptors as what it is, not as a missing plugin (S13)', () => {
    const meaning = networkMeaning('EMFILE', { address: 'a', scheme: 's', ca: 'c' })
    expect(meaning).to.match(/no file descriptor left: raise the limit/)
  })
})
