import { expect } from 'chai'
import {
  inject as injection,
  review,
  type InjectSettings,
  followPair
} from '../../../../agent/hook/inject/inject.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MOST_LINES } from '../../../../agent/base/log.ts'
import { checkInjection } from '../../../../agent/doctor/checks/check-pods.ts'
import { serveWebhook } from '../../../../agent/hook/inject/server.ts'
import { selfSigned } from '../../../../sandbox/kubernetes/tls.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'

const curl: InjectSettings = {
  host: 'apisix-drain.apisix.svc',
  certificateFile: 'crt',
  keyFile: 'key',
  hook: 'curl',
  url: 'http://apisix-drain.apisix:8080/v1/prestop',
  volumes: []
}
const helper: InjectSettings = {
  ...curl,
  hook: 'helper',
  initContainer: { name: 'apisix-drain-hook', image: 'hook' },
  volumes: [
    {
      volume: { name: 'apisix-drain-hook', emptyDir: {} },
      mount: { name: 'apisix-drain-hook', mountPath: '/apisix-drain' }
    }
  ]
}
const web = { name: 'web', ports: [{ containerPort: 80 }] }
const inject = (...of: Parameters<typeof injection>) => injection(...of).operations
const ENV = ['', '/-', '/-', '/-'].map(end => `/spec/containers/0/env${end}`)

/** These tests need no API server and no policy. test/install/webhook.test.ts compares every rule with both. */
describe('inject', () => {
  it('with curl, adds only the environment and a command that names the pod and uses no proxy', () => {
    const operations = inject({ spec: { containers: [web] } }, curl)
    expect(operations.map(({ path }) => path).slice(2)).to.deep.equal(ENV)
    const { value } = operations.find(({ path }) => path.endsWith('/preStop')) ?? {}
    const { exec } = value as { exec: { command: string[] } }
    expect(exec.command[2]).to.match(
      /^sleep 5 & timeout 24 .* curl -fsS -m 24 --noproxy "\*" .*\/v1\/prestop\?namespace=\$POD_NAMESPACE&pod=\$POD_NAME&container=web&sleep=5s" && exit/
    )
  })

  for (const odd of [undefined, null, 'pod', {}, { spec: [] }, { spec: { containers: [null, 7], os: 4 } }]) {
    it(`adds nothing harmful for ${JSON.stringify(odd)}`, () => {
      for (const { path } of inject(odd, helper)) expect(path).to.match(/^\/spec\//)
    })
  }
})

describe('review', () => {
  const asked = (object: unknown, kind = 'Pod') => ({ request: { uid: 'u-1', kind: { kind }, object } })

  it('always allows, with a patch or without one', () => {
    const given = review(asked({ spec: { containers: [web] } }), curl)?.response
    expect(given).to.include({ uid: 'u-1', allowed: true, patchType: 'JSONPatch' })
    expect(JSON.parse(Buffer.from(given?.patch ?? '', 'base64').toString())).to.have.length(2 + ENV.length)
    expect(
      review(asked({ spec: { terminationGracePeriodSeconds: 0, containers: [web] } }), curl)?.response
    ).to.deep.equal({
      uid: 'u-1',
      allowed: true
    })
  })

  const named = (names: string) => ({ annotations: { 'apisix-drain.io/inject-containers': names } })
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ ...web, name: `c${i}` }))

  it('adds nothing beyond its limits, and says so', () => {
    const answer = (metadata: object, containers: readonly object[]) =>
      review(asked({ metadata, spec: { containers } }), curl)?.response
    const warned = (why: string) => ({
      uid: 'u-1',
      allowed: true,
      warnings: [`apisix-drain adds no hook to this pod: ${why}`]
    })
    const long = 'web,'.repeat(257)
    expect(answer(named(long), [web])).to.deep.equal(
      warned(`apisix-drain.io/inject-containers: "${long.slice(0, 60)}…" is longer than 1024 characters`)
    )
    expect(answer({}, many(251))).to.deep.equal(warned('it has more than 250 containers'))
    expect(answer(named(long.slice(0, 1024)), many(250))).not.to.have.property('warnings')
  })

  it('takes no time for 100,000 containers and an annotation that names them: a stranger can send anything', () => {
    const names = many(100_000).map(({ name }) => name)
    const object = { metadata: named(names.join(',')), spec: { containers: names.map(name => ({ name })) } }
    const text = JSON.stringify(asked(object))
    // The time of this thread: load does not count.
    const from = process.threadCpuUsage()
    review(JSON.parse(text), curl)
    expect(process.threadCpuUsage(from).user / 1000).to.be.below(250)
  })

  it('refuses a review that is not of a pod', () => {
    for (const odd of [undefined, 'x', {}, { request: {} }, asked({}, 'Service')]) {
      expect(review(odd, curl)).to.equal(undefined)
    }
  })
})

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
