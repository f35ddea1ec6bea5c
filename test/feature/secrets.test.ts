import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { stringify } from 'yaml'
import { loadConfig, printConfig } from '../../agent/config/load.ts'
import { createLog } from '../../agent/base/log.ts'
import { createAdminApi } from '../../agent/gateway/apisix/admin-api.ts'
import { createBarrierClient } from '../../agent/gateway/apisix/barrier-api.ts'
import { adminOptions, barrierOptions } from '../../agent/start/wire.ts'
import { startRaw, until } from '../build/apisix.ts'
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
          const loaded = loadConfig(undefined, {
            A: key,
            B: token,
            C: page,
            APISIX_DRAIN_APISIX_ADMIN_URL: dead ? 'http://127.0.0.1:9' : server.url,
            APISIX_DRAIN_APISIX_ADMIN_KEY_ENV: 'A',
            APISIX_DRAIN_APISIX_BARRIER_TOKEN_ENV: 'B',
            APISIX_DRAIN_APISIX_BARRIER_PORT: dead ? '9' : new URL(server.url).port,
            APISIX_DRAIN_SERVE_DASHBOARD_ENABLED: 'true',
            APISIX_DRAIN_SERVE_DASHBOARD_TOKEN_ENV: 'C'
          })
          if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
          const { config } = loaded
          const admin = createAdminApi(adminOptions(config.apisix.admin))
          const barrier = createBarrierClient(barrierOptions(config.apisix.barrier!))
          const errors = await Promise.all(
            [
              () => admin.get('upstreams', 'web'),
              () => admin.put('upstreams', 'web', {}),
              () => barrier.at('127.0.0.1').state(),
              () => barrier.at('127.0.0.1').remove(['u'])
            ].map(call =>
              call().then(
                () => undefined,
                (err: unknown) => err
              )
            )
          )
          for (const err of errors) {
            log.error({ err, config, settings: loaded.settings, key: config.apisix.admin.key }, 'failed')
            expectNone(String(err) + JSON.stringify(err), secrets, 'an error')
          }
          admin.close()
          barrier.close()
          expectNone(lines.join(''), secrets, 'the log')
          expectNone(printConfig(loaded), secrets, '--print-config')
          expectNone(JSON.stringify(config) + String(config.apisix.admin.key), secrets, 'the configuration')
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
        const env = {
          PATH: process.env['PATH'],
          ...Object.fromEntries(Object.entries(rig.settings).map(([k, v]) => [`APISIX_DRAIN_${k}`, v])),
          KEY: key,
          PAGE: page,
          APISIX_DRAIN_APISIX_ADMIN_KEY_ENV: 'KEY',
          APISIX_DRAIN_SERVE_DASHBOARD_ENABLED: 'true',
          APISIX_DRAIN_SERVE_DASHBOARD_TOKEN_ENV: 'PAGE',
          APISIX_DRAIN_LOG_LEVEL: 'trace'
        }
        const secrets = [kube, page, ...(key === wrong ? [wrong] : [])]
        const run = (...args: string[]) => {
          const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
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
    const file = join(folder, 'config.yaml')
    const mistakes = [
      { apisix: { admin: { url: 'http://a:1', key: planted } } },
      { apisix: { admin: { url: `http://admin:${planted}@a:1`, keyEnv: 'KEY' } } },
      { apisix: { admin: { url: 'http://a:1', keyEnv: 'KEY' }, barrier: { token: planted } } },
      { apisix: { admin: { url: 'http://a:1', keyEnv: 'KEY' } }, serve: { dashboard: { token: planted } } },
      { apisix: { admin: { url: 'http://a:1', keyEnv: 'KEY' } }, log: { level: planted } }
    ]
    for (const mistake of mistakes) {
      await writeFile(file, stringify(mistake))
      const loaded = loadConfig(file, { KEY: 'edd1' })
      expect(loaded.ok).to.equal(false)
      if (!loaded.ok) expectNone(loaded.problems.join('\n'), [planted], JSON.stringify(mistake))
    }
  })
})
