import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { CodedError } from '../../../../agent/base/errors.ts'
import { createHttp, type HttpClient } from '../../../../agent/gateway/apisix/http.ts'

// Failed calls to the Barrier API, which the agent calls without axios.

describe('calls to the Barrier API', () => {
  const ends: (() => void)[] = []
  let http: HttpClient
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
    expect(await failure(put(denied))).to.include({ code: 'BARRIER_DENIED', said: 'no' })
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
})
