import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { ranMs, startRaw, until } from '../build/apisix.ts'
import { startWorld, type World } from '../../sandbox/world.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs the real program with these arguments, and waits for its end. Before that it awaits `during`, while the program runs. */
async function program(args: string[], during?: (child: ChildProcess, out: () => string) => Promise<void>) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (text.err += chunk.toString()))
  const ended = once(child, 'close')
  try {
    await during?.(child, () => text.out)
    const [code] = (await ended) as [number | null]
    return { code, ...text } satisfies Ended
  } finally {
    child.kill('SIGKILL')
  }
}

describe('the program', () => {
  let world: World
  let file: string
  let settings: Record<string, unknown>

  const write = async (name: string, content: unknown) => {
    const path = join(dirname(world.kubeconfigFile), name)
    await writeFile(path, typeof content === 'string' ? content : stringify(content))
    return path
  }

  before(async () => {
    world = await startWorld({ replicas: 1, gateways: 1, workers: 2, seed: 1 })
    const [gateway] = world.gateways.gateways
    const port = (url: string | undefined) => Number(new URL(url ?? 'http://x:0').port)
    settings = {
      kubernetes: { kubeconfig: world.kubeconfigFile },
      apisix: {
        admin: { url: world.gateways.admin.url, keyFile: await write('key', world.gateways.admin.key) },
        control: { port: port(gateway?.control) },
        gateways: { static: [{ name: 'one', host: gateway?.host }] }
      },
      serve: { host: '127.0.0.1', port: 0, dashboard: { enabled: false } }
    }
    file = await write('config.yaml', settings)
  })
  after(() => world.close())

  it('prints its usage and its version', async () => {
    expect(await program(['--help'])).to.include({ code: 0, err: '' })
    expect((await program(['--version'])).out).to.match(/^\d+\.\d+\.\d+\n$/)
  })

  it('prints the configuration with every default, and no secret', async () => {
    const { code, out } = await program(['--config', file, '--print-config'])
    expect(code).to.equal(0)
    expect(out)
      .to.match(/reserve: 7s/)
      .and.not.include(world.gateways.admin.key)
  })

  it('doctor finds everything in order', async () => {
    const { code, out } = await program(['doctor', '--config', file, '--json'])
    const { healthy, findings } = JSON.parse(out) as {
      healthy: boolean
      findings: { name: string; level: string }[]
    }
    expect(findings.filter(({ level }) => level === 'fail')).to.deep.equal([])
    expect({ healthy, code }).to.deep.equal({ healthy: true, code: 0 })
    expect(findings.map(({ name }) => name)).to.include.members(['kubernetes', 'rbac', 'admin-api', 'pods'])
  })

  it('prints what others say without control characters (S11)', async () => {
    const said = 'no\u001b[2J\u009b2J\u007f\u202e key'
    const server = await startRaw((_, response) =>
      response.writeHead(401).end(JSON.stringify({ error_msg: said }))
    )
    try {
      const apisix = settings['apisix'] as Record<string, unknown>
      const admin = { url: server.url, keyFile: await write('wrong-key', 'not-the-key') }
      const hostile = await write('hostile.yaml', { ...settings, apisix: { ...apisix, admin } })
      for (const json of [[], ['--json']]) {
        const { out } = await program(['doctor', '--config', hostile, ...json])
        expect(out).to.match(/no.*\[2J2J key/)
        expect(out).to.not.match(/[^\P{C}\n]/u)
      }
    } finally {
      await server.close()
    }
  })

  it('ends soon after SIGTERM, whatever strangers keep open (S10)', async () => {
    const serve = { host: '127.0.0.1', port: 0, dashboard: { enabled: true, auth: 'none' } }
    const strangers: Socket[] = []
    let stoppedAt = Infinity
    const config = await write('strangers.yaml', { ...settings, serve })
    const { code, out } = await program(['--config', config], async (child, log) => {
      await until('it listens', () => log().includes('"listening"'))
      const port = Number(/"port":(\d+)/.exec(log())?.[1])
      for (const text of ['', 'GET /he', 'GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n']) {
        const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
        strangers.push(socket)
        await once(socket, 'connect')
        socket.write(text)
      }
      await once(strangers.at(-1)!, 'data')
      child.kill('SIGTERM')
      stoppedAt = performance.now()
    })
    for (const socket of strangers) socket.destroy()
    expect(code).to.equal(0)
    expect(out)
      .to.match(/"msg":"stopped"/)
      .and.not.match(/did not finish/)
    expect(ranMs(stoppedAt)).to.be.below(5000)
  })

  it('runs until it is stopped, and exits with 0', async () => {
    const { code, out } = await program(['--config', file], async (child, log) => {
      await until('it listens', () => log().includes('"listening"'))
      const port = /"port":(\d+)/.exec(log())?.[1]
      const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
      let isReady = false
      await until('it is ready', () => (void ready().then(ok => (isReady ||= ok)), isReady))
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      expect(metrics).to.match(/^apisix_drain_watch_state\{kind="pods",state="live"\} 1$/m)
      child.kill('SIGTERM')
    })
    expect(code).to.equal(0)
    expect(out)
      .to.match(/"msg":"stopped"/)
      .and.not.match(/"level":"(error|fatal)"/)
  })
})
