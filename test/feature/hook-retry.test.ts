import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect } from 'chai'
import { parse } from 'yaml'
import { startAgentProcess, type AgentProcess } from '../build/agent-process.ts'
import { until } from '../build/apisix.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const README = new URL('../../README.md', import.meta.url)
const LEASE = { LEADER_NAMESPACE: 'default', LEADER_NAME: 'drain', DRAIN_MINIMUM_EVIDENCE: 'accepted' }

interface Hook {
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
}

/** Returns the script of the hook in the README, which users copy. It is the only YAML block there that calls the agent. */
function documented(): string {
  const blocks = readFileSync(README, 'utf8').matchAll(/```yaml\n(.*?)```/gs)
  const hooks = [...blocks].map(([, yaml]) => parse(yaml ?? '') as Partial<Hook>)
  const scripts = hooks.flatMap(hook => hook.lifecycle?.preStop.exec.command.at(-1) ?? [])
  const found = scripts.find(script => script.includes('curl'))
  if (found === undefined) throw new Error('the README documents no hook with curl')
  return found
}

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

/** Runs the script in a real shell with a real curl, from the pod's address. It has the documented variables, and those of a proxy. */
async function run(script: string, port: number, pod: TestPod) {
  const text = script
    .replace('apisix-drain.apisix:8080', `127.0.0.1:${port}`)
    .replace('curl ', `curl --interface ${pod.ip} `)
  const proxy = 'http://127.0.0.1:1'
  const named = { POD_NAME: pod.name, POD_NAMESPACE: pod.namespace }
  const child = spawn('sh', ['-c', text], { env: { ...process.env, ...named, http_proxy: proxy } })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const from = performance.now()
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, ms: performance.now() - from }
}

describe('feature: the documented hook', () => {
  const test = sideBySide({ agent: false, config: LEASE })
  /** The documented hook, with shorter waits for the tests. */
  const brief = documented().replace('timeout 24', 'timeout 4').replace('sleep 5', 'sleep 1')

  it('has a time limit, tries again, and falls back', () => {
    expect(documented()).to.match(/^timeout 24 .*curl -fsS .* && exit\n.*\|\| sleep 5\n$/s)
    expect(brief).to.include('timeout 4 ').and.include('|| sleep 1\n')
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
        expect(JSON.parse(out)).to.include({ result: 'removed' })
        expect(rig.nodes('upstreams/web')).to.have.length(1)
        entrance.close()
      } finally {
        await Promise.all(agents.map(agent => agent.end('SIGKILL')))
      }
    })
  }

  test('falls back to its sleep if there is no agent, and never fails', async start => {
    const rig = await start()
    const entrance = await service([{ port: 9 }])
    const { code, ms, out } = await run(documented(), entrance.port, rig.pod('web'))
    expect([code, out]).to.deep.equal([0, ''])
    expect(ms).to.be.at.least(5000)
    entrance.close()
  })

  test('does not wait for an agent that accepts the call and never answers', async start => {
    const rig = await start()
    const silent = await listener(() => {})
    const { code, ms } = await run(brief, silent.port, rig.pod('web'))
    expect(code).to.equal(0)
    expect(ms).to.be.at.least(5000)
    // The hook takes 4 s (its time limit) and 1 s (its sleep). Without the limit it would still run.
    expect(ms).to.be.below(15_000)
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
