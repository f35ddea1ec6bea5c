import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createTls } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect } from 'chai'
import { parse } from 'yaml'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { startAgentProcess, type AgentProcess } from '../build/agent-process.ts'
import { ranMs, until } from '../build/apisix.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const LEASE = { LEADER_LEASE: 'default/drain' }

interface Hook {
  readonly lifecycle: { readonly preStop: { readonly exec?: { readonly command: readonly string[] } } }
}

/** Returns the script of the hook in the README, or in another page, which users copy: the only YAML block there that calls the agent so. */
function documented(page = 'README.md', program = 'curl'): string {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')
  const hooks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map(
    ([, yaml]) => parse(yaml ?? '') as Partial<Hook>
  )
  const scripts = hooks.flatMap(hook => hook.lifecycle?.preStop.exec?.command.at(-1) ?? [])
  const found = scripts.find(script => script.includes(`${program} `))
  if (found === undefined) throw new Error(`${page} documents no hook with ${program}`)
  return found
}
const RECIPES = { curl: documented(), wget: documented('docs/hooks.md', 'wget') }

/** Starts a Service like kube-proxy's: it forwards each new connection, from the caller's address, to the next agent that accepts it. */
async function service(agents: readonly { readonly port: number }[]) {
  let turn = 0
  return listener(client => {
    const dial = (left: number): void => {
      const agent = agents[turn++ % agents.length]
      if (left === 0 || !agent) return void client.resetAndDestroy()
      const upstream = connect({
        port: agent.port,
        host: '127.0.0.1',
        localAddress: client.remoteAddress ?? ''
      })
      upstream.once('error', () => dial(left - 1))
      upstream.unref()
      upstream.once('connect', () => {
        upstream.removeAllListeners('error')
        upstream.on('error', () => client.resetAndDestroy())
        client.on('close', () => upstream.destroy())
        client.pipe(upstream).pipe(client)
      })
    }
    dial(agents.length)
  })
}

/** Starts a listener. At the end of the test, it closes all its connections. */
async function listener(take: (client: Socket) => void) {
  const server = createServer(client => {
    client.on('error', () => {})
    client.unref()
    take(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}

/** Starts a port whose packets are dropped: the queue of a listener that is stopped is full. */
async function blackHole() {
  const code = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })`
  const child = spawn(process.execPath, ['-e', code])
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  child.kill('SIGSTOP')
  const port = Number(line.toString())
  const queued: Socket[] = []
  for (let isFull = false; !isFull;) {
    const socket = connect({ port, host: '127.0.0.1', timeout: 500 })
    socket.on('error', () => {})
    queued.push(socket)
    isFull = await Promise.race([
      once(socket, 'connect').then(() => false),
      once(socket, 'timeout').then(() => true)
    ])
  }
  const close = () => {
    for (const socket of queued) socket.destroy()
    child.kill('SIGKILL')
  }
  return { at: `127.0.0.1:${port}`, close }
}

/** Starts an agent that answers every call with this status. */
async function answering(status: number) {
  const server = createHttp((_, response) => response.writeHead(status).end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => server.close().closeAllConnections()
  return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

/** The shells that images have, and the programs that come with each. */
const SHELLS = { dash: ['sh'], bash: ['sh'], busybox: ['sh', 'timeout', 'sleep', 'wget'] } as const

/**
 * Runs the script with a real curl, from the pod's address. It has the documented variables, and those of a proxy.
 *
 * @param at the address of the agent
 */
async function run(
  script: string,
  at: number | string,
  pod: Pick<TestPod, 'ip' | 'name' | 'namespace'>,
  shell: keyof typeof SHELLS = 'dash'
) {
  const text = script
    .replace('apisix-drain.apisix:8080', typeof at === 'number' ? `127.0.0.1:${at}` : at)
    .replace('curl ', `curl --interface ${pod.ip} `)
  const programs = mkdtempSync(join(tmpdir(), 'apisix-drain-shell-'))
  for (const name of SHELLS[shell]) symlinkSync(`/bin/${shell}`, join(programs, name))
  const env = {
    ...process.env,
    PATH: `${programs}:${process.env['PATH']}`,
    POD_NAME: pod.name,
    POD_NAMESPACE: pod.namespace,
    http_proxy: 'http://127.0.0.1:1'
  }
  const from = performance.now()
  const child = spawn(join(programs, 'sh'), ['-c', text], { env })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  rmSync(programs, { recursive: true })
  return { code, out, ms: performance.now() - from, ranMs: ranMs(from) }
}

describe('feature: the documented hook', () => {
  const test = sideBySide({ agent: false, config: LEASE })
  /** The documented hook, with a shorter limit for the tests. */
  const brief = documented().replace('timeout 24', 'timeout 6').replace('-m 24', '-m 6')

  it('has a time limit, tries again, and falls back', () => {
    expect(documented()).to.match(/^sleep 5 & timeout 24 .*curl -fsS -m 24 .* && exit\n.*\|\| wait\n$/s)
    const [, pauses = '', connect] =
      /for pause in ([\d ]+);.*--connect-timeout ([\d.]+)/s.exec(documented()) ?? []
    const tries = pauses.split(' ').map(pause => Number(pause) + Number(connect))
    // The programs of the tries have to start too, on a busy machine: a black hole took 6.8 s when these were 5 s.
    expect(tries.reduce((sum, ms) => sum + ms, 0)).to.be.at.most(4.2)
    expect(brief).to.include('timeout 6 ').and.include('-m 6 ')
  })

  const POD = { ip: '127.0.0.1', name: 'web', namespace: 'shop' }
  /** Each recipe in each shell. */
  const everywhere = <T extends object>(
    play: (script: { text: string; shell: keyof typeof SHELLS }) => Promise<T>
  ) =>
    Promise.all(
      Object.entries(RECIPES).flatMap(([recipe, text]) =>
        (Object.keys(SHELLS) as (keyof typeof SHELLS)[]).map(async shell => ({
          name: `${recipe} in ${shell}`,
          ...(await play({ text, shell }))
        }))
      )
    )
  const TROUBLES: Readonly<
    Record<string, () => Promise<{ readonly at: string; readonly close: () => void }>>
  > = {
    'refuses connections': async () => ({ at: '127.0.0.1:9', close: () => {} }),
    'has no address': async () => ({ at: 'agent.invalid:8080', close: () => {} }),
    'answers 404': () => answering(404),
    'answers 503': () => answering(503),
    'drops all packets': blackHole,
    'speaks TLS': async () => {
      const server = createTls(await selfSigned(['127.0.0.1'])).listen(0, '127.0.0.1')
      await once(server, 'listening')
      return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() }
    }
  }
  for (const [trouble, start] of Object.entries(TROUBLES))
    test(`takes the time of its sleep, and at most 1 s more, when the agent ${trouble}`, async () => {
      const { at, close } = await start()
      const runs = await everywhere(script => run(script.text, at, POD, script.shell))
      close()
      for (const { name, code, ms, ranMs } of runs) {
        expect(code).to.equal(0)
        expect(ms, name).to.be.at.least(5000)
        expect(ranMs, name).to.be.at.most(6000)
      }
    })

  test('ends when the agent answers, and says what it answered', async () => {
    const { at, close } = await answering(200)
    for (const { name, code, out, ms } of await everywhere(script =>
      run(script.text, at, POD, script.shell)
    )) {
      expect({ code, out: out.slice(0, 2) }, name).to.deep.equal({ code: 0, out: '{}' })
      expect(ms, name).to.be.below(5000)
    }
    close()
  })

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`is continued by the other agent when its own ends by ${signal}`, async start => {
      const rig = await start()
      const agents: AgentProcess[] = []
      try {
        // The agents start one after another, so that the first leads. They stop without a wait for held hooks.
        for (let i = 0; i < 2; i++)
          agents.push(await startAgentProcess(rig, { SERVE_SHUTDOWN_TIMEOUT: '0s' }))
        const [first] = agents as [AgentProcess, AgentProcess]
        const entrance = await service(agents)
        const { pod, held } = await endingPod(rig, 1500)
        const hook = run(documented(), entrance.port, pod)
        await held(first)
        await first.end(signal)
        const { code, out } = await hook
        expect(code).to.equal(0)
        expect(JSON.parse(out)).to.include({ result: 'drained' })
        expect(rig.nodes('upstreams/web')).to.have.length(1)
        entrance.close()
      } finally {
        await Promise.all(agents.map(agent => agent.end('SIGKILL')))
      }
    })
  }

  test('does not wait for an agent that accepts the call and never answers', async () => {
    const silent = await listener(() => {})
    const shells = Object.keys(SHELLS) as (keyof typeof SHELLS)[]
    const runs = await Promise.all(shells.map(shell => run(brief, silent.port, POD, shell)))
    for (const [i, { code, ms }] of runs.entries()) {
      expect(code, shells[i]).to.equal(0)
      // The time limit is 6 s. Without it the hook would still run.
      expect(ms, shells[i]).to.be.within(6000, 15_000)
    }
    silent.close()
  })
})

/** Ends a pod. The Admin API takes `takesMs` for its removal, so its hook takes as long. */
async function endingPod(rig: Rig, takesMs: number) {
  const pod = rig.pod('web-0')
  rig.upstream('web', [pod, rig.pod('stays')])
  await rig.settled()
  rig.admin.faults.inject({ fault: { kind: 'slow', ms: takesMs } })
  rig.end(pod)
  const held = async ({ port }: AgentProcess) => {
    let holds = false
    const ask = async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      holds ||= /^apisix_drain_hook_waiting 1$/m.test(text)
    }
    await until('the hook is held', () => (void ask().catch(() => {}), holds))
  }
  return { pod, held }
}
