import { expect } from 'chai'
import { Agent } from 'node:http'
import { KEEP_SESSIONS } from '../../agent/rules/drain/annotations.ts'
import { Backend } from './backend.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { Sessions } from './sessions.ts'
import { withAgent, type LivePod, type WithAgent } from './with-agent.ts'

const KEPT_SECONDS = 10
const SESSIONS = 40
const key = (session: number) => ({ cookie: `sid=s-${session}` })

describe('Sticky sessions with the agent', () => {
  let gateway: Gateway
  let world: WithAgent
  let pods: LivePod[]
  const agent = new Agent({ keepAlive: true, maxSockets: SESSIONS })
  const reached = async () => await new Sessions(`${gateway.url}/u`, agent).reached(key, SESSIONS)

  before(async function () {
    this.timeout(60_000)
    gateway = await Gateway.start({ workers: 2 })
    world = await withAgent(gateway)
  })
  beforeEach(async () => {
    pods = []
    const annotations = { [KEEP_SESSIONS]: `${KEPT_SECONDS}s` }
    const preStop = 'curl -fsS -X POST http://apisix-drain/v1/prestop || sleep 5'
    while (pods.length < 3) pods.push(await world.pod(await Backend.start(), { annotations, preStop }))
    await world.route(pods, { type: 'chash', hash_on: 'cookie', key: 'sid' })
  })
  afterEach(async () => {
    for (const pod of pods) {
      world.gone(pod)
      await pod.backend.kill()
    }
  })
  after(async () => {
    agent.destroy()
    await world?.close()
    await gateway?.stop()
  })

  const kept = async ({ uid }: LivePod) => {
    const { entries } = await gateway.barrier.inflight([uid])
    return entries[0]?.keep
  }

  it(`stay with the pod for the ${KEPT_SECONDS} s that it asks for; then it is sealed, and its hook answered`, async () => {
    const [ending] = pods as [LivePod]
    const before = await reached()
    expect(before).include(ending.backend.name)
    const answered = world.end(ending)
    await eventually('the gateway keeps its sessions', async () => (await kept(ending)) !== undefined)
    expect(await reached()).to.deep.equal(before)
    expect(await kept(ending)).to.be.within(0.1, KEPT_SECONDS)

    const { status, body, ms } = await answered
    expect({ status, result: body.result, evidence: body.evidence }).to.deep.equal({
      status: 200,
      result: 'drained',
      evidence: 'barrier'
    })
    expect(ms).to.be.above((KEPT_SECONDS - 1) * 1000)
    const after = await reached()
    expect(after).not.include(ending.backend.name)
    before.forEach((pod, i) => pod === ending.backend.name || expect(after[i]).to.equal(pod))
  })

  it('move once the caller of the hook is gone: nothing keeps the pod alive any longer', async () => {
    const [ending] = pods as [LivePod]
    const caller = new AbortController()
    const answered = world.end(ending, caller.signal).catch((error: Error) => error.name)
    await eventually('the gateway keeps its sessions', async () => (await kept(ending)) !== undefined)
    await eventually('its hook is held', () => world.agent.loop.held().length === 1)
    const left = (await kept(ending)) ?? 0
    caller.abort()
    expect(await answered).to.equal('AbortError')
    await eventually('it is sealed', async () => {
      const { entries } = await gateway.barrier.inflight([ending.uid])
      return entries[0]?.state === 'sealed'
    })
    expect(left).to.be.above(0)
    expect(await reached()).not.include(ending.backend.name)
  })

  // This test must be the last: after it the agent makes no more decisions.
  it('stay with the pod if its agent stops and releases the hook: another agent gets it', async () => {
    const [ending] = pods as [LivePod]
    const before = await reached()
    const caller = new AbortController()
    const answered = world.end(ending, caller.signal).catch((error: Error) => error.name)
    await eventually('its hook is held', () => world.agent.loop.held().length === 1)
    await eventually('the gateway keeps its sessions', async () => (await kept(ending)) !== undefined)
    world.agent.loop.rest()
    const drains = world.agent.loop.drains()
    caller.abort()
    expect(await answered).to.equal('AbortError')
    await eventually('its hook is released', () => world.agent.loop.held().length === 0)
    world.agent.loop.wake()
    expect(await reached()).to.deep.equal(before)
    expect(world.agent.loop.drains(), 'no round has run').to.equal(drains)
    const { entries } = await gateway.barrier.inflight([ending.uid])
    expect(entries[0]).to.include({ state: 'draining' })
  })
})
