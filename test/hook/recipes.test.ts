import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createTls } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect } from 'chai'
import { parse } from 'yaml'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { startAgentProcess, type AgentProcess } from '../build/agent-process.ts'
import { ranMs, until } from '../build/apisix.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { HOOK } from './run.ts'
import { DRAINED } from './stub.ts'

/** Returns the script of the hook in a page that users copy: the only YAML block there that calls the agent with this program. */
function documented(page: string, program: string): string {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')
  const [script, ...more] = [...text.matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, yaml]) => {
    const hook = parse(yaml ?? '') as { lifecycle?: { preStop: { exec?: { command: string[] } } } }
    return hook.lifecycle?.preStop.exec?.command.filter(word => word.includes(`${program} `)) ?? []
  })
  if (script === undefined || more.length > 0) throw new Error(`${page} documents no hook with ${program}`)
  return script
}
const CURL = documented('README.md', 'curl')
const WGET = documented('docs/hooks.md', 'wget')
/** The hooks, each with a program that its image needs besides a shell. */
const RECIPES = {
  curl: { text: CURL, program: '/usr/bin/curl' },
  'wget, GNU': { text: WGET, program: '/usr/bin/wget' },
  'wget, busybox': { text: WGET, program: '/bin/busybox' },
  helper: { text: `${HOOK} --url http://apisix-drain.apisix:8080 --container web`, program: HOOK }
} as const

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

/** Starts an agent that answers every hook with this status, after `ms`. */
async function answering(status: number, ms = 0) {
  const server = createHttp(({ url }, response) => {
    const isHook = url !== '/healthz'
    void setTimeout(isHook ? ms : 0).then(() => response.writeHead(status).end(isHook ? ANSWER : ''))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => server.close().closeAllConnections()
  return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}
const ANSWER = JSON.stringify(DRAINED)

/** The shells that images have, and the programs that come with each. */
const SHELLS = { dash: ['sh'], bash: ['sh'], busybox: ['sh', 'timeout', 'sleep'] } as const
type Shell = keyof typeof SHELLS

interface Cell {
  readonly recipe: keyof typeof RECIPES
  readonly shell: Shell
}
/** Each recipe in each shell. */
const CELLS = (Object.keys(RECIPES) as Cell['recipe'][]).flatMap(recipe =>
  (Object.keys(SHELLS) as Shell[]).map((shell): Cell => ({ recipe, shell }))
)
const POD = { ip: '127.0.0.1', name: 'web', namespace: 'shop' }

/**
 * Runs a recipe, from the pod's address. It has the documented variables, and those of a proxy.
 *
 * @param at the address of the agent
 * @param edits to its times, each from one text to another
 */
async function run(
  { recipe, shell }: Cell,
  at: string,
  { pod = POD, edits = {} }: { pod?: typeof POD; edits?: Readonly<Record<string, string>> } = {}
) {
  const { text, program } = RECIPES[recipe]
  const script = Object.entries({ 'apisix-drain.apisix:8080': at, ...edits }).reduce(
    (edited, [from, to]) => edited.replace(from, to),
    text.replace('curl ', `curl --interface ${pod.ip} `)
  )
  const programs = mkdtempSync(join(tmpdir(), 'apisix-drain-shell-'))
  for (const name of SHELLS[shell]) symlinkSync(`/bin/${shell}`, join(programs, name))
  if (recipe.startsWith('wget')) symlinkSync(program, join(programs, 'wget'))
  const env = {
    ...process.env,
    PATH: `${programs}:${process.env['PATH']}`,
    POD_NAME: pod.name,
    POD_NAMESPACE: pod.namespace,
    http_proxy: 'http://127.0.0.1:1'
  }
  const from = performance.now()
  const child = spawn(join(programs, 'sh'), ['-c', script], { env })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  rmSync(programs, { recursive: true })
  return { code, out, err, ms: performance.now() - from, ranMs: ranMs(from) }
}

/** Each is an agent that helps no hook. */
const TROUBLES: Readonly<Record<string, () => Promise<{ readonly at: string; readonly close: () => void }>>> =
  {
    refused: async () => ({ at: '127.0.0.1:9', close: () => {} }),
    'DNS fails': async () => ({ at: 'agent.invalid:8080', close: () => {} }),
    '404': () => answering(404),
    '503': () => answering(503),
    'black hole': blackHole,
    'TLS error': async () => {
      const server = createTls(await selfSigned(['127.0.0.1'])).listen(0, '127.0.0.1')
      await once(server, 'listening')
      return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() }
    }
  }

describe('hook, each recipe', () => {
  it('ends its tries a good while before its sleep: their programs have to start too, on a busy machine', () => {
    const [, pauses = '', connect] = /for pause in ([\d ]+);.*--connect-timeout ([\d.]+)/s.exec(CURL) ?? []
    const tries = pauses.split(' ').map(pause => Number(pause) + Number(connect))
    // A black hole took 6.8 s when these were 5 s.
    expect(tries.reduce((sum, seconds) => sum + seconds, 0)).to.be.at.most(4.2)
  })

  it('takes the time of its sleep, and at most 1 s more, whatever the agent does: a table', async () => {
    const agents = await Promise.all(
      Object.entries(TROUBLES).map(async ([name, start]) => ({ name, ...(await start()) }))
    )
    const row = ([first = '', ...more]: readonly string[]) =>
      first.padEnd(26) + more.map(text => text.padStart(11)).join('')
    console.log(row(['seconds, sleep 5', ...agents.map(({ name }) => name)]))
    const rows = CELLS.map(async (cell, i) => {
      const runs = agents.map(async ({ at }, j) => {
        // If all started at once, they would wait for each other.
        await setTimeout(100 * (i * agents.length + j))
        return run(cell, at)
      })
      return { ...cell, runs: await Promise.all(runs) }
    })
    for (const { recipe, shell, runs } of await Promise.all(rows)) {
      console.log(row([`${recipe} in ${shell}`, ...runs.map(({ ms }) => (ms / 1000).toFixed(2))]))
      for (const [j, { code, ms, ranMs }] of runs.entries()) {
        const cell = `${recipe} in ${shell}: ${agents[j]?.name}`
        expect({ code, isWhole: ms >= 5000 }, cell).to.deep.equal({ code: 0, isWhole: true })
        expect(ranMs, cell).to.be.at.most(6000)
      }
    }
    for (const { close } of agents) close()
  })
})

describe('hook, each recipe beside other agents', () => {
  const test = sideBySide({ agent: false, config: { LEADER_LEASE: 'default/drain' } })

  // A busy machine has time for each step. After the second sleep there is nothing left to end.
  for (const [when, after, sleep] of [
    ['when the agent answers', 0, 'sleep 40'],
    ['when the agent answers later than the sleep', 5500, 'sleep 5']
  ] as const)
    test(`ends ${when}, and says nothing but the answer`, async () => {
      const { at, close } = await answering(200, after)
      const edits = { 'sleep 5': sleep, 'timeout 2 ': 'timeout 20 ' }
      const runs = CELLS.map(async cell => ({ ...cell, ...(await run(cell, at, { edits })) }))
      for (const { recipe, shell, code, out, err, ms, ranMs } of await Promise.all(runs)) {
        const said = err.replace(/^apisix-drain-hook: drained.*\n$/, ANSWER)
        expect({ code, said: out + said }, `${recipe} in ${shell}`).to.deep.equal({ code: 0, said: ANSWER })
        expect(ms, `${recipe} in ${shell}`).to.be.at.least(after)
        expect(ranMs, `${recipe} in ${shell}`).to.be.below(30_000)
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
        const hook = run({ recipe: 'curl', shell: 'dash' }, `127.0.0.1:${entrance.port}`, { pod })
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
    const BRIEF = { 'timeout 24': 'timeout 6', '-m 24': '-m 6' }
    const curl = CELLS.filter(({ recipe }) => recipe === 'curl')
    const at = `127.0.0.1:${silent.port}`
    const runs = await Promise.all(curl.map(cell => run(cell, at, { edits: BRIEF })))
    // The time limit is 6 s. Without it the hook would still run.
    for (const { code, ms } of runs)
      expect({ code, isBrief: ms >= 6000 && ms < 20_000 }).to.deep.equal({ code: 0, isBrief: true })
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
