import { readFileSync } from 'node:fs'
import { expect } from 'chai'

import { CodedError } from '../../../../agent/base/errors.ts'
import { createControlReader } from '../../../../agent/gateway/apisix/control-api.ts'
import { startRaw } from '../../../build/apisix.ts'

const recorded = (
  JSON.parse(readFileSync('test/recordings/control-api-etcd.json', 'utf8')) as {
    exchanges: { request: { path: string }; response: { status: number; body: unknown } }[]
  }
).exchanges

/** Starts a server that gives the recorded answers. */
const playRecording = () =>
  startRaw((request, response) => {
    const found = recorded.find(e => e.request.path === request.url)?.response
    response.writeHead(found?.status ?? 404).end(JSON.stringify(found?.body ?? {}))
  })

describe('control-api', () => {
  let raw: Awaited<ReturnType<typeof startRaw>>
  afterEach(() => raw.close())
  const reader = (differs: { timeoutMs?: number; maxBytes?: number } = {}) =>
    createControlReader({ port: raw.port, timeoutMs: 20_000, now: () => 7, ...differs })

  it('reads every holder of the recordings with its nodes', async () => {
    raw = await playRecording()
    const { beganAt, holders } = await reader()('127.0.0.1')
    expect(beganAt).to.equal(7)
    expect(Object.fromEntries(holders)).to.deep.equal({
      'upstreams/web': [],
      'upstreams/api': [],
      'upstreams/00000000000000004124': ['127.0.0.31:8080'],
      'upstreams/six': ['127.0.0.1:8080', '[::1]:8080'],
      'upstreams/noport': ['127.0.0.1'],
      'upstreams/disc': [],
      'services/svc/upstream': ['127.0.0.11:8080'],
      'routes/r-inline/upstream': ['127.0.0.11:8080'],
      'routes/r-split/traffic-split/0/0': ['127.0.0.12:8080', '127.0.0.11:8080']
    })
  })

  it('opens a fresh connection for every request', async () => {
    raw = await playRecording()
    const read = reader()
    await read('127.0.0.1')
    await read('127.0.0.1')
    expect(raw.connections()).to.equal(6)
  })

  it('reads {} as an empty result', async () => {
    raw = await startRaw((_, response) => response.end('{}'))
    expect((await reader()('127.0.0.1')).holders.size).to.equal(0)
  })

  const answers: [string, string, Parameters<typeof startRaw>[0]][] = [
    ['a hang', 'CONTROL_TIMEOUT', () => {}],
    ['a page', 'CONTROL_REFUSED', (_, response) => response.writeHead(404).end('<html>')],
    ['500', 'CONTROL_UNAVAILABLE', (_, response) => response.writeHead(500).end('<html>')],
    ['other JSON', 'CONTROL_GARBLED', (_, response) => response.end('[{"key":1}]')],
    ['a closed connection', 'CONTROL_UNREACHABLE', request => request.socket.destroy()],
    ['too much', 'CONTROL_TOO_LARGE', (_, response) => response.end(`[${' '.repeat(5000)}]`)]
  ]
  for (const [name, code, answer] of answers)
    it(`fails with ${code} on ${name}`, async () => {
      raw = await startRaw(answer)
      const timeoutMs = code === 'CONTROL_TIMEOUT' ? 100 : 20_000
      const error = await reader({ timeoutMs, maxBytes: 4000 })('127.0.0.1').catch((e: unknown) => e)
      expect(error).to.be.instanceOf(CodedError)
      expect((error as CodedError).code).to.equal(code)
    })
})
