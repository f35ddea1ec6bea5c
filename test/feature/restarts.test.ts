import { expect } from 'chai'
import { ranMs, until } from '../build/apisix.ts'
import { setTimeout as wait } from 'node:timers/promises'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import type { TestAgent } from '../build/agent.ts'
import { callHook } from '../build/hook.ts'
import { ownWay } from '../build/own-way.ts'
import { serving } from '../build/pair.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide, type Start } from '../build/side-by-side.ts'

const OWNER = { kind: 'ReplicaSet', name: 'web-1a2b' }

describe('feature: a container restarts, and its pod stays', () => {
  const test = sideBySide({ barrier: true, gateways: 2 }, 2)

  async function three(start: Start, options: Parameters<Rig['pod']>[1] = {}, config = {}) {
    const rig = await start({ config })
    const pods = ['web-1', 'web-2', 'web-3'].map(name => rig.pod(name, { owner: OWNER, ...options }))
    const backends = await serving(rig, ...pods)
    const [old] = pods as [TestPod]
    for (const pod of pods) rig.restarted(pod, 0)
    await until('the agent has seen the runs', () => pods.every(({ ip }) => rig.agent.pod(ip)?.runs !== ''))
    return { rig, old, pods, backends }
  }
  const sealed = (rig: Rig) => rig.gateways.map(gateway => gateway.barrier?.entries.size)
  const lifted = (rig: Rig) => until('the seal is lifted', () => sealed(rig).every(size => size === 0))

  test('of three pods under requests, twice in a row with two agents: nothing fails, and no list is written', async start => {
    const { rig, old, backends } = await three(start)
    const first = rig.agent
    const agents = [first, await rig.readyAgent()]
    const load = rig.load(50)
    let app = backends[0]!
    for (const [restarts, agent] of [...agents, ...agents].entries()) {
      const { status, body } = await rig.hook(old, 'container=app&sleep=10m', undefined, agent)
      expect([status, body.result, body.evidence]).to.deep.equal([200, 'drained', 'barrier'])
      expect(sealed(rig)).to.deep.equal([1, 1])
      await app.close()
      app = await rig.serve(old)
      rig.restarted(old, restarts + 1)
      await lifted(rig)
      await until('both know', () =>
        agents.every(agent => agent.pod(old.ip)?.runs?.endsWith(`-${restarts + 1}`))
      )
      const before = load.result.by[old.name] ?? 0
      await until('the pod gets requests again', () => (load.result.by[old.name] ?? 0) > before)
    }
    expect((await load.stop()).failures).to.deep.equal([])
    expect(rig.writes).to.deep.equal([])
  })

  // A stand-in for the kubelet's order: of an eviction or a host's shutdown, no status tells before the containers have stopped.
  for (const [what, status] of [
    ['a soft eviction', { phase: 'Failed', reason: 'Evicted' }],
    ['a host that shuts down', { phase: 'Succeeded', reason: 'Terminated' }]
  ] as const)
    test(`or does not: ${what} ends the pod, and its status comes late: nothing fails`, async start => {
      const { rig, old, backends } = await three(start)
      const load = rig.load(50)
      const { status: code, body } = await rig.hook(old, 'container=app&sleep=10m')
      expect([code, body.result, body.evidence]).to.deep.equal([200, 'drained', 'barrier'])
      await backends[0]!.close()
      rig.isReady(old, false)
      const { namespace, name, uid } = old
      rig.kubernetes.store.patchStatus('pods', namespace, name, status)
      const drain = () => rig.agent.loop.drains().get(uid as PodUid)
      await until('the agent knows that the pod ends', () => drain()?.witnesses.phase !== undefined)
      expect(sealed(rig)).to.deep.equal([1, 1])
      rig.gone(old)
      await until('it knows that the pod is gone', () => (drain()?.phase ?? 'gone') === 'gone')
      expect(sealed(rig)).to.deep.equal([1, 1])
      expect((await load.stop()).failures).to.deep.equal([])
    })

  test('of a proxy that serves nothing: its app goes on, ten times', async start => {
    const { rig, old } = await three(start, { proxy: true })
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => rig.hook(old, 'container=proxy&sleep=1s'))
    )
    for (const { status, body } of answers) expect([status, body.result]).to.deep.equal([503, 'stays'])
    expect(sealed(rig)).to.deep.equal([0, 0])
  })

  test('of a proxy that serves something else: only its app stays in service', async start => {
    const { rig, old } = await three(start, { proxy: true })
    const { status } = await rig.hook(old, 'container=app&sleep=10m')
    expect(status).to.equal(200)
    const [gateway] = rig.gateways
    const [entry] = gateway!.barrier!.entries.all()
    expect([entry?.ip, entry?.port]).to.deep.equal([old.ip, old.port])
    rig.end(old)
    await until('the whole pod is sealed', () => gateway!.barrier!.entries.look(old.ip, 1) === 'sealed')
    expect((await rig.hook(old, 'container=proxy')).body).to.include({ result: 'drained' })
  })

  test('of an app that hangs: its hook takes no longer than its own sleep, and the seal stands until it is back', async start => {
    const { rig, old, backends } = await three(start)
    // Five at two workers: one worker sends at least three in turn, so at least one to each of three pods.
    const asked = Array.from({ length: 5 }, () => fetch(`${rig.gateways[0]!.urls.proxy}/?hold`))
    await until('one of them waits at the pod', () => backends[0]!.open > 0)
    const { status, body, ms, ranMs } = await rig.hook(old, 'container=app&sleep=1s')
    expect([status, body.result]).to.deep.equal([503, 'unproved'])
    expect(body.change).to.contain('no longer than its own sleep')
    expect(ms).to.be.at.least(990)
    expect(ranMs).to.be.below(2000)
    await until('it is sealed', () => sealed(rig).every(size => size === 1))
    rig.restarted(old, 0)
    expect(sealed(rig), 'the same run').to.deep.equal([1, 1])
    for (const one of backends) one.release()
    await Promise.all(asked)
    rig.isReady(old, false)
    rig.restarted(old, 1)
    await until('the agent has seen it', () => rig.agent.pod(old.ip)?.runs?.endsWith('app-1') === true)
    expect(sealed(rig), 'not Ready yet').to.deep.equal([1, 1])
    rig.isReady(old, true)
    await lifted(rig)
  })

  /** The hook calls this agent. Resolves when every gateway has sealed the pod. */
  async function stops(rig: Rig, old: TestPod, agent: TestAgent) {
    const answered = rig.hook(old, 'container=app&sleep=10m', undefined, agent)
    await rig.entryIs('sealed', old)
    await answered
  }
  /** Two agents, of which the first one got the hook of the first pod. */
  async function twoAgents(start: Start, config: Record<string, string>, graceSeconds = 300) {
    const { rig, old, backends } = await three(start, { graceSeconds }, config)
    const first = rig.agent
    await rig.readyAgent()
    const at = performance.now()
    await stops(rig, old, first)
    return { rig, old, backends, first, other: rig.agent, at }
  }
  const isKnownTo = (agent: TestAgent, { uid }: TestPod) =>
    until('it knows of the restart', () => agent.loop.drains().has(uid as PodUid))

  test('whose agent is killed: another one lifts the seal once the container is back', async start => {
    const { rig, old, first, other } = await twoAgents(start, {})
    await isKnownTo(other, old)
    await first.close('SIGKILL')
    rig.restarted(old, 1)
    await until('the seal is lifted', () => sealed(rig).every(size => size === 0), 2000)
  })

  test('whose agent is killed, and the container does not come back: another one keeps the seal until the bound', async start => {
    const { rig, old, first, other, at } = await twoAgents(start, { APISIX_BARRIER_TTL: '3s' }, 3)
    await isKnownTo(other, old)
    await first.close('SIGKILL')
    await lifted(rig)
    expect(performance.now() - at).to.be.at.least(12_500)
    expect(ranMs(at)).to.be.below(17_000)
  })

  test('while its only agent is killed: the next one lifts the seal, although it never saw the old container', async start => {
    const { rig, old } = await three(start)
    await stops(rig, old, rig.agent)
    await rig.agent.close('SIGKILL')
    rig.restarted(old, 1)
    expect(sealed(rig)).to.deep.equal([1, 1])
    await rig.startAgent()
    await lifted(rig)
    expect(rig.agent.loop.drains().size).to.equal(0)
  })

  test('twice, and one agent hears late of the first time: it does not lift the second seal', async start => {
    const rig = await start({ agent: false })
    const way = await ownWay(rig)
    const late = await rig.startAgent(way.settings)
    const { old } = await three(() => Promise.resolve(rig))
    const other = await rig.readyAgent()
    await until('both know the first run', () => late.pod(old.ip)?.runs?.endsWith('app-0') === true)
    await stops(rig, old, late)
    await isKnownTo(other, old)
    const goOn = way.hold()
    rig.restarted(old, 1)
    await lifted(rig)
    await stops(rig, old, other)
    const seen = new Set<number | undefined>()
    const watch = setInterval(() => sealed(rig).forEach(size => seen.add(size)), 2)
    goOn()
    await until('it hears', () => late.pod(old.ip)?.runs?.endsWith('app-1') === true)
    await wait(1500)
    clearInterval(watch)
    await way.close()
    expect([...seen]).to.deep.equal([1])
    rig.restarted(old, 2)
    await lifted(rig)
  })

  test('cannot be forged in one gateway for all', async start => {
    const { rig, old, pods } = await three(start)
    const everywhere = pods[1]!
    const forged = ({ uid, ip }: TestPod) => {
      const stop = `app:${rig.agent.pod(ip)?.runs}`
      return { uid, ip, port: undefined, state: 'sealed', ttl: 30, stop, stoppedFor: 0 } as const
    }
    rig.gateways[0]!.barrier!.entries.put(forged(old))
    for (const { barrier } of rig.gateways) barrier!.entries.put(forged(everywhere))
    await until('the agent has read the one that is in all', () => rig.agent.loop.drains().size > 0)
    expect([...rig.agent.loop.drains().keys()]).to.deep.equal([everywhere.uid])
  })

  test('cannot be claimed by a GET, which others can cause, or from an address that is not the pod’s alone', async start => {
    const { rig, old } = await three(start)
    const host = rig.pod('host-agent', { hostNetwork: true })
    await rig.settled()
    const { port } = rig.agent
    const query = 'namespace=shop&pod=web-1&container=app&sleep=1s'
    const forged = await Promise.all([
      callHook({ port, from: old.ip, query, method: 'GET' }),
      callHook({ port, from: host.ip, query }),
      callHook({ port, from: rig.address(), query })
    ])
    for (const { status, body } of forged) expect([status, body.result]).to.deep.equal([503, 'stays'])
    expect(rig.agent.loop.drains().size).to.equal(0)
    expect(sealed(rig)).to.deep.equal([0, 0])
  })
})
