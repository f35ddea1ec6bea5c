import { request } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { MOST_LINES } from '../../../../agent/base/rare.ts'
import { isFresh, makePair, type Pair } from '../../../../agent/hook/inject/certificate.ts'
import { keepCertificate } from '../../../../agent/hook/inject/keeper.ts'
import type { InjectSettings } from '../../../../agent/hook/inject/settings.ts'
import { serveWebhook } from '../../../../agent/hook/inject/server.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'

const HOST = 'apisix-drain.apisix.svc'
const NAMES = { host: HOST, namespace: 'apisix', secret: 's', configuration: 'c' }
const SETTINGS: InjectSettings = {
  ...NAMES,
  hook: 'curl',
  url: 'http://a:1/v1/prestop',
  volumes: []
}
const DAY_MS = 86_400_000

describe('certificate of the webhook', () => {
  const now = Date.now()

  it('is valid for its host and 60 days, and renewed before it expires', async () => {
    const pair = await makePair(HOST, now)
    expect(isFresh(pair, HOST, now)).to.equal(true)
    expect(isFresh(pair, HOST, now + 59 * DAY_MS)).to.equal(true)
    expect(isFresh(pair, HOST, now + 61 * DAY_MS)).to.equal(false)
    expect(isFresh(pair, HOST, now - DAY_MS)).to.equal(false)
    expect(isFresh(pair, 'other.apisix.svc', now)).to.equal(false)
    expect(isFresh({ certificate: 'none', key: '' }, HOST, now)).to.equal(false)
  })

  it('is shared: an agent that loses the race for the Secret serves the winner’s certificate', async () => {
    const winner = await makePair(HOST, now)
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const written = { data: { 'tls.crt': base64(winner.certificate), 'tls.key': base64(winner.key) } }
    const clock = manualClock(now)
    const order: string[] = []
    let secret: object = {}
    const served = Promise.withResolvers<Pair>()
    const lost = Promise.withResolvers<void>()
    const stop = keepCertificate({
      settings: NAMES,
      clock,
      log: memoryLog().log,
      onPair: pair => (order.push('served'), served.resolve(pair)),
      async call(method, path) {
        order.push(`${method} ${path.split('/').at(-1)}`)
        const isSecret = path.includes('/secrets/')
        if (method === 'PUT' && isSecret) {
          secret = written
          lost.resolve()
          return { status: 409, headers: {}, json: { reason: 'Conflict' }, retryAfterMs: undefined }
        }
        const json = isSecret ? secret : { webhooks: [{ clientConfig: {} }] }
        return { status: 200, headers: {}, json, retryAfterMs: undefined }
      }
    })
    await lost.promise
    while (clock.pending === 0) await new Promise(resolve => setImmediate(resolve))
    clock.advance(2000)
    expect(await served.promise).to.deep.equal(winner)
    stop()
    // The API server gets the certificate before the webhook serves it.
    expect(order).to.deep.equal(['GET s', 'PUT s', 'GET s', 'GET c', 'PUT c', 'served'])
  })
})

describe('server of the webhook', () => {
  it('answers reviews, and refuses any other body, or one that is too large', async () => {
    const pair = await makePair(HOST, Date.now())
    const { log, lines } = memoryLog()
    const webhook = await serveWebhook({ host: '127.0.0.1', port: 0 }, SETTINGS, log, manualClock())
    webhook.use(pair)
    const ask = async (path: string, body: string, method = 'POST') => {
      const options = {
        method,
        port: webhook.port,
        host: '127.0.0.1',
        ca: pair.certificate,
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
      for (let i = 0; i < 2 * MOST_LINES; i++) expect(await ask('/v1/inject', '{')).to.equal(400)
      expect(lines.filter(({ msg }) => msg === 'a review could not be read').length).to.equal(MOST_LINES)
      expect(await ask('/', '', 'GET')).to.equal(404)
    } finally {
      await webhook.close()
    }
  })
})
