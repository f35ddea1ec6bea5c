import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { expect } from 'chai'
import { startLoad } from '../../../../sandbox/load/generate.ts'
import type { LoadOptions, LoadResult } from '../../../../sandbox/load/options.ts'
import { until } from '../../../build/apisix.ts'

const servers: Server[] = []

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const options = (target: string, differs: Partial<LoadOptions> = {}): LoadOptions => ({
  targets: [target],
  path: '/',
  rate: 200,
  seed: 1,
  traffic: 'no-uploads',
  timeoutMs: 60_000,
  ...differs
})

/** Sends load until at least `requests` have ended. */
async function load(target: string, requests = 30, differs: Partial<LoadOptions> = {}): Promise<LoadResult> {
  const running = startLoad(options(target, differs))
  await until(`${requests} requests`, () => running.counts().requests >= requests, 60_000)
  return await running.stop()
}

describe('sandbox/load', () => {
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  const broken: readonly [string, RequestListener, 'status' | 'reset' | 'timeout' | 'truncated'][] = [
    ['a 502', (_, response) => void response.writeHead(502).end('bad'), 'status'],
    ['a connection that is reset', request => void request.socket.resetAndDestroy(), 'reset'],
    ['silence', () => {}, 'timeout'],
    ['an answer that never ends', (_, response) => void response.writeHead(200).write('{'), 'timeout'],
    [
      'a body that ends early',
      (_, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{')
        setTimeout(() => response.destroy(), 10)
      },
      'truncated'
    ]
  ]
  for (const [what, listener, kind] of broken) {
    it(`counts ${what} as ${kind}`, async () => {
      const result = await load(await serve(listener), 30, kind === 'timeout' ? { timeoutMs: 400 } : {})
      expect(result.requests).to.be.at.least(30)
      expect(result.failed).to.equal(result.requests)
      expect(result.byKind[kind], JSON.stringify(result.byKind)).to.equal(result.requests)
      expect(result.failures[0]).to.include({ kind })
    })
  }

  it('counts a refused connection as reset', async () => {
    const url = await serve(() => {})
    servers.pop()!.close()
    expect((await load(url)).byKind.reset).to.be.at.least(30)
  })

  it('does not accept a 200 for an incomplete upload', async () => {
    const url = await serve((_, response) => void response.end('{"received":3,"x":0}'))
    const { byRequest, byKind } = await load(url, 60)
    expect(byRequest.post.failed).to.equal(byRequest.post.requests).and.to.be.above(0)
    expect(byRequest.get.failed).to.equal(0)
    expect(byKind.truncated).to.equal(byRequest.post.failed)
  })
})
