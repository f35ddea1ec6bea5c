import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { MOST_LINES } from '../../../../agent/base/log.ts'
import { checkInjection } from '../../../../agent/doctor/checks/check-pods.ts'
import { followPair, type InjectSettings } from '../../../../agent/hook/inject/inject.ts'
import { serveWebhook } from '../../../../agent/hook/inject/server.ts'
import { selfSigned } from '../../../../sandbox/kubernetes/tls.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'

const HOST = 'apisix-drain.apisix.svc'
const SETTINGS: InjectSettings = {
  host: HOST,
  certificateFile: '/nowhere/crt',
  keyFile: '/nowhere/key',
  hook: 'curl',
  url: 'http://a:1/v1/prestop',
  volumes: []
}
const DAY_MS = 86_400_000

describe('certificate of the webhook', () => {
  let folder: string
  let files: InjectSettings
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pair-'))
    files = { ...SETTINGS, certificateFile: join(folder, 'crt'), keyFile: join(folder, 'key') }
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const write = ({ cert, key }: { cert: string; key: string }) => {
    writeFileSync(files.certificateFile, cert)
    writeFileSync(files.keyFile, key)
  }

  it('is served from its files, also when they come late or change; a bad pair is logged once and not used', async () => {
    const { log, lines } = memoryLog()
    const clock = manualClock()
    const webhook = await serveWebhook({ host: '127.0.0.1', port: 0 }, files, log, clock)
    const stop = followPair(files, pair => webhook.use(pair), { clock, log })
    /** Whether a client that trusts only this CA can call. */
    const trusts = async ({ ca }: { ca: string }) => {
      const asked = request({ port: webhook.port, host: '127.0.0.1', ca, servername: HOST, agent: false })
      const answered = once(asked, 'response').then(
        ([response]) => (response as IncomingMessage).resume().statusCode === 404,
        () => false
      )
      asked.end()
      return answered
    }
    const turn = async () => {
      while (clock.pending === 0) await new Promise(resolve => setImmediate(resolve))
      clock.advance(10_000)
      while (clock.pending === 0) await new Promise(resolve => setImmediate(resolve))
    }
    try {
      const [first, second] = [await selfSigned([HOST]), await selfSigned([HOST])]
      await turn()
      expect(lines.filter(({ level }) => level === 'warn')).to.have.length(1)
      expect(await trusts(first)).to.equal(false)
      write(first)
      await turn()
      expect(await trusts(first)).to.equal(true)
      write({ cert: second.cert, key: first.key })
      await turn()
      await turn()
      expect(lines.filter(({ level }) => level === 'warn')).to.have.length(2)
      expect(await trusts(first)).to.equal(true)
      write(second)
      await turn()
      expect([await trusts(first), await trusts(second)]).to.deep.equal([false, true])
    } finally {
      stop()
      await webhook.close()
    }
  })

  it('is checked by doctor: its files, its host, its end', async () => {
    const find = async (settings: InjectSettings, now = Date.now()) =>
      (
        await checkInjection(
          () => settings,
          () => now
        )(AbortSignal.timeout(1000))
      )[0]
    expect((await find(files))?.what).to.match(/^the webhook has no valid certificate, .*: ENOENT/)
    write(await selfSigned([HOST]))
    expect(await find(files, Date.now() - 10 * DAY_MS)).to.include({ level: 'ok' })
    expect((await find(files))?.what, 'it ends tomorrow').to.match(/: it ends .* GMT$/)
    expect((await find({ ...files, host: 'other.svc' }))?.what).to.match(/: it is not for other.svc$/)
  })
})

describe('server of the webhook', () => {
  it('answers reviews, and refuses any other body, or one that is too large', async () => {
    const { ca, cert, key } = await selfSigned([HOST])
    const { log, lines } = memoryLog()
    const webhook = await serveWebhook({ host: '127.0.0.1', port: 0 }, SETTINGS, log, manualClock())
    webhook.use({ certificate: cert, key })
    const ask = async (path: string, body: string, method = 'POST') => {
      const options = {
        method,
        port: webhook.port,
        host: '127.0.0.1',
        ca,
        servername: HOST,
        path
      }
      const asked = request(options)
      asked.on('error', () => {})
      asked.end(body)
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }
    try {
      const pod = { request: { uid: 'u', kind: { kind: 'Pod' }, object: {} } }
      expect(await ask('/v1/inject?timeout=3s', JSON.stringify(pod))).to.equal(200)
      expect(await ask('/v1/inject', '{}')).to.equal(400)
      expect(await ask('/v1/inject', 'no JSON')).to.equal(400)
      expect(await ask('/v1/inject', 'x'.repeat(5 * 2 ** 20))).to.equal(413)
      expect(
        await ask('/v1/inject', JSON.stringify({ request: { object: Array(200_000).fill(1) } }))
      ).to.equal(413)
      expect(await ask('/v1/inject', '['.repeat(1e6))).to.equal(413)
      for (let i = 0; i < 2 * MOST_LINES; i++) expect(await ask('/v1/inject', '{')).to.equal(400)
      expect(lines.filter(({ msg }) => msg === 'a review could not be read').length).to.equal(MOST_LINES)
      expect(await ask('/', '', 'GET')).to.equal(404)
    } finally {
      await webhook.close()
    }
  })
})
