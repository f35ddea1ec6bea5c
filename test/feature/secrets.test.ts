import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createNet, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { stringify } from 'yaml'
import { loadConfig, printConfig } from '../../agent/config/load.ts'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import { keyOf } from '../../sandbox/apisix/store.ts'
import { endAll, type Ends } from '../../sandbox/ends.ts'
import { selfSigned, type Certificate } from '../../sandbox/kubernetes/tls.ts'
import { createLog } from '../../agent/base/log.ts'
import { createAdminApi } from '../../agent/gateway/apisix/admin-api.ts'
import { createBarrierClient } from '../../agent/gateway/apisix/barrier-api.ts'
import { adminOptions, barrierOptions } from '../../agent/start/wire.ts'
import { startRaw, until } from '../build/apisix.ts'
import { configFile, fileOf } from '../build/config.ts'
import { callHook } from '../build/hook.ts'
import { startRig } from '../build/rig.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))

/** Random secrets, long enough not to occur in an output by chance. */
const secret = fc.string({
  minLength: 12,
  maxLength: 40,
  unit: fc.constantFrom(...'abcdefghijkmnpqrstuvwxyz23456789-_.=+/'.split(''))
})

/** Returns the secret, and the encodings that would also reveal it. */
const forms = (value: string) => [
  value,
  encodeURIComponent(value),
  Buffer.from(value).toString('base64').replace(/=+$/, ''),
  Buffer.from(value).toString('hex')
]
const expectNone = (text: string, secrets: readonly string[], where: string) => {
  for (const form of secrets.flatMap(forms))
    expect(text.includes(form), `${where} shows a secret`).to.equal(false)
}

describe('feature: secrets are shown nowhere', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'apisix-drain-secrets-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('law: not by --print-config, nor by an error or a log line about any answer, for any secret', async () => {
    const answers: [number, string][] = [
      [401, '{"error_msg":"failed to check token"}'],
      [500, 'broken'],
      [200, '<html>'],
      [503, '{"error_msg":"value changed before overwritten"}']
    ]
    let next = 0
    const server = await startRaw((_request, response) => {
      const [status, body] = answers[next++ % answers.length] ?? [500, '']
      response.writeHead(status).end(body)
    })
    try {
      await fc.assert(
        fc.asyncProperty(secret, secret, secret, fc.boolean(), async (key, token, page, dead) => {
          const secrets = [key, token, page]
          const lines: string[] = []
          const log = createLog({ level: 'trace' }, { write: line => void lines.push(line) })
          const loaded = loadConfig(
            configFile({
              APISIX_ADMIN_URL: dead ? 'http://127.0.0.1:9' : server.url,
              APISIX_ADMIN_KEY: key,
              APISIX_BARRIER_SCHEME: 'http',
              APISIX_BARRIER_TOKEN: token,
              APISIX_BARRIER_PORT: dead ? '9' : new URL(server.url).port,
              SERVE_DASHBOARD_ENABLED: 'true',
              SERVE_DASHBOARD_TOKEN: page
            })
          )
          if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
          const { config } = loaded
          const admin = createAdminApi(adminOptions(config.apisix.admin!))
          const barrier = createBarrierClient(barrierOptions(config.apisix.barrier!))
          const errors = await Promise.all(
            [
              () => admin.get('upstreams', 'web'),
              () => admin.put('upstreams', 'web', {}),
              () => barrier.at('127.0.0.1').state(),
              () => barrier.at('127.0.0.1').remove({ uids: ['u'] })
            ].map(call =>
              call().then(
                () => undefined,
                (err: unknown) => err
              )
            )
          )
          for (const err of errors) {
            log.error({ err, config, settings: loaded.settings, key: config.apisix.admin!.key }, 'failed')
            expectNone(String(err) + JSON.stringify(err), secrets, 'an error')
          }
          admin.close()
          barrier.close()
          expectNone(lines.join(''), secrets, 'the log')
          expectNone(printConfig(loaded), secrets, '--print-config')
          expectNone(JSON.stringify(config) + String(config.apisix.admin!.key), secrets, 'the configuration')
        }),
        { numRuns: 60 }
      )
    } finally {
      await server.close()
    }
  })

  it('not by the program: log, errors, pages, answers to hooks and doctor, with right and wrong secrets', async () => {
    const rig = await startRig({ gateways: 1, barrier: true, agent: false })
    try {
      const wrong = 'wr0ng-key-4711-planted'
      const page = 'dashb0ard-4712-planted'
      const kube = rig.kubernetes.token
      // The stand-ins' own key is not tested: it is so short that its forms would occur by chance.
      for (const key of [rig.barrierToken, wrong]) {
        const config = configFile({
          ...rig.settings,
          APISIX_ADMIN_KEY: key,
          APISIX_BARRIER_TOKEN: key,
          SERVE_DASHBOARD_ENABLED: 'true',
          SERVE_DASHBOARD_TOKEN: page,
          LOG_LEVEL: 'trace'
        })
        const secrets = [kube, page, ...(key === wrong ? [wrong] : [])]
        const run = (...args: string[]) => {
          const child = spawn(process.execPath, [MAIN, ...args, '--config', config], {
            env: { PATH: process.env['PATH'] },
            stdio: ['ignore', 'pipe', 'pipe']
          })
          let text = ''
          for (const stream of [child.stdout, child.stderr])
            stream.on('data', chunk => (text += String(chunk)))
          const ended = once(child, 'close')
          return { child, ended, text: () => text }
        }
        for (const args of [['--print-config'], ['doctor'], ['doctor', '--json']]) {
          const { ended, text } = run(...args)
          await ended
          expect(text()).to.not.equal('')
          expectNone(text(), secrets, args.join(' '))
        }
        const { child, ended, text } = run()
        try {
          await until('it listens', () => text().includes('"listening"'), 30_000)
          const port = Number(/"port":(\d+)/.exec(text())?.[1])
          const pod = rig.pod(`web-${key.length}`)
          rig.upstream('web', [pod, rig.pod(`stays-${key.length}`)])
          rig.end(pod)
          const seen: string[] = []
          const read = async (path: string, headers: Record<string, string> = {}) => {
            const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
            seen.push(JSON.stringify([...response.headers]), await response.text())
          }
          seen.push(JSON.stringify((await callHook({ port, from: pod.ip })).body))
          const shown = { authorization: `Bearer ${page}` }
          for (const path of ['/', '/metrics', '/readyz', '/healthz', '/nowhere', '/v1/prestop?token=x'])
            await read(path)
          for (const path of ['/', '/api/state', '/v1/barrier-entries']) await read(path, shown)
          await read('/v1/barrier-entries', { authorization: `Bearer ${key}` })
          expectNone(seen.join('\n'), secrets, 'an answer')
        } finally {
          child.kill('SIGTERM')
        }
        await ended
        expectNone(text(), secrets, 'the log')
      }
    } finally {
      await rig.close()
    }
  })

  it('not if the file of a secret is unusable, nor if a secret was written into the configuration by mistake', async () => {
    const planted = 'hunter2-planted-by-mistake'
    const [file, keyFile] = [join(folder, 'config.yaml'), fileOf('edd1')]
    const mistakes = [
      { apisix: { admin: { url: 'http://a:1', key: planted } } },
      { apisix: { admin: { url: `http://admin:${planted}@a:1`, keyFile } } },
      { apisix: { admin: { url: 'http://a:1', keyFile }, barrier: { token: planted } } },
      { apisix: { admin: { url: 'http://a:1', keyFile } }, serve: { dashboard: { token: planted } } },
      { apisix: { admin: { url: 'http://a:1', keyFile } }, log: { level: planted } }
    ]
    for (const mistake of mistakes) {
      await writeFile(file, stringify(mistake))
      const loaded = loadConfig(file)
      expect(loaded.ok).to.equal(false)
      if (!loaded.ok) expectNone(loaded.problems.join('\n'), [planted], JSON.stringify(mistake))
    }
  })
})

describe('feature: each secret goes where it was meant', () => {
  /** The secrets of an agent. What else it has, such as the key of the webhook, it sends nowhere. */
  const SECRETS = {
    key: 'admin-key-4713-planted',
    barrier: 'barrier-token-4714-planted',
    page: 'dashboard-token-4715-planted'
  }
  const ends: Ends = []
  afterEach(() => endAll(ends))

  /** Listens at a place. Returns which secrets came there, in any form, and whether anything came at all. */
  const place = async (host: string, port: number, tls?: Certificate, answer = '') => {
    let [text, calls] = ['', 0]
    const hear = (socket: Socket) => {
      socket.on('error', () => {})
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
        socket.end(answer)
      })
      ends.push(() => void socket.destroy())
    }
    const server = tls ? createTls(tls, hear) : createNet(hear)
    server.on('connection', () => (calls += 1))
    server.listen(port, host)
    await once(server, 'listening')
    ends.push(() => void server.close())
    return {
      url: `http://${host}:${(server.address() as AddressInfo).port}`,
      calls: () => calls,
      got: () =>
        Object.entries(SECRETS).flatMap(([name, it]) => (forms(it).some(f => text.includes(f)) ? name : []))
    }
  }

  it('law: by every other way that it could take, a listener gets none (S3)', async () => {
    const [good, other] = [await selfSigned(['barrier.test']), await selfSigned(['barrier.test'])]
    const net = `127.${64 + (process.pid % 64)}.${(process.pid >> 8) & 127}`
    const [control, port] = [29_191, 29_193]
    const rig = await startRig({ gateways: 0, agent: false })
    ends.push(() => rig.close())
    const admin = await serveAdminApi({
      store: rig.apisix.store,
      host: `${net}.1`,
      port: 0,
      adminKey: SECRETS.key
    })
    ends.push(() => admin.close())
    const keys: unknown[] = []
    admin.listener.server.on('request', ({ headers }) => keys.push(headers['x-api-key']))
    const moved = await place(`${net}.2`, 0)
    const gateways = {
      'the certificate of the CA': await place(`${net}.3`, port, good),
      'the certificate of another CA': await place(`${net}.4`, port, other),
      'no TLS': await place(`${net}.5`, port),
      'an answer that leads elsewhere': await place(
        `${net}.6`,
        port,
        good,
        `HTTP/1.1 307 x\r\nlocation: ${moved.url}/\r\ncontent-length: 0\r\n\r\n`
      )
    }
    const controls = await Promise.all([3, 4, 5, 6].map(n => place(`${net}.${n}`, control)))
    const [proxy, node] = [await place(`${net}.8`, 0), await place(`${net}.9`, 0)]
    for (const n of [3, 4, 5, 6]) rig.showGateway(`looks-like-one-${n}`, `${net}.${n}`)
    rig.apisix.store.put(keyOf('upstreams', 'web'), {
      id: 'web',
      type: 'roundrobin',
      nodes: { [new URL(node.url).host]: 1 }
    })
    const folder = await mkdtemp(join(tmpdir(), 'apisix-drain-places-'))
    ends.push(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'ca.crt'), good.ca)
    const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
    const settings = {
      ...rig.settings,
      APISIX_ADMIN_URL: admin.url,
      APISIX_ADMIN_KEY: SECRETS.key,
      APISIX_CONTROL_PORT: String(control),
      APISIX_BARRIER_PORT: String(port),
      APISIX_BARRIER_TOKEN: SECRETS.barrier,
      APISIX_BARRIER_CA_FILE: join(folder, 'ca.crt'),
      APISIX_BARRIER_SERVER_NAME: 'barrier.test',
      SERVE_DASHBOARD_ENABLED: 'true',
      SERVE_DASHBOARD_TOKEN: SECRETS.page
    }
    const env = {
      PATH: process.env['PATH'],
      ...Object.fromEntries(proxies.map(name => [name, proxy.url])),
      NODE_USE_ENV_PROXY: '1',
      NODE_TLS_REJECT_UNAUTHORIZED: '0'
    }
    const child = spawn(process.execPath, [MAIN, '--config', configFile(settings)], {
      env,
      stdio: ['ignore', 'ignore', 'inherit']
    })
    ends.push(() => void child.kill('SIGKILL'))
    for (const { calls } of [...Object.values(gateways), ...controls])
      await until('the agent called each of them twice', () => calls() > 1)
    for (const right of ['the certificate of the CA', 'an answer that leads elsewhere'] as const)
      await until('who has the certificate gets the token', () => gateways[right].got().join() === 'barrier')
    expect([...new Set(keys)], 'it listed the holders').to.deep.equal([SECRETS.key])
    expect(gateways['the certificate of another CA'].got()).to.deep.equal([])
    expect(gateways['no TLS'].got()).to.deep.equal([])
    for (const { got } of controls) expect(got()).to.deep.equal([])
    for (const { calls } of [moved, proxy, node]) expect(calls()).to.equal(0)
  })
})
