import { expect } from 'chai'
import { startAgentProcess } from '../build/agent-process.ts'
import type { TestAgent } from '../build/agent.ts'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const LEASE = { LEADER_LEASE: 'default/drain' }

/** Starts two agents of one rig. Resolves when one of them leads and the other knows. */
async function pair(rig: Rig): Promise<{ readonly leader: TestAgent; readonly follower: TestAgent }> {
  const leader = rig.agent
  await until('the first leads', () => holder(rig) !== '')
  const follower = await rig.readyAgent()
  await until('the second follows', () => says(follower, 'another agent holds the Lease'))
  return { leader, follower }
}

const holder = (rig: Rig) =>
  rig.kubernetes.store.get('leases', 'default', 'drain')?.spec?.holderIdentity ?? ''
const says = ({ lines }: TestAgent, why: string) =>
  lines.findLast(({ msg }) => msg === 'leadership')?.['why'] === why

describe('feature: one of two agents leads', () => {
  const test = sideBySide({ gateways: 2, config: LEASE })

  test('both agents answer, and each node is written out at most twice', async start => {
    const rig = await start()
    const { leader, follower } = await pair(rig)
    const pods = Array.from({ length: 4 }, (_, i) => rig.pod(`web-${i}`))
    for (const [i, pod] of pods.entries()) rig.upstream(`u${i}`, [pod, rig.pod(`stays-${i}`)])
    await rig.settled()
    await until('both list all', () =>
      [leader, follower].every(agent => pods.every((_, i) => agent.nodes(`upstreams/u${i}`) === 2))
    )
    for (const pod of pods) {
      rig.end(pod)
      for (const { body } of await Promise.all(
        [leader, follower].map(({ port }) => callHook({ port, from: pod.ip }))
      ))
        expect(body).to.include({ result: 'drained', evidence: 'observed' })
    }
    expect(rig.writes.length).to.be.within(pods.length, pods.length * 2)
  })

  test('the Lease is unavailable: both do all the work, and hooks are as quick', async start => {
    const rig = await start({ agent: false })
    rig.kubernetes.faults.deny({ verb: '*', resource: 'leases' })
    const agents = [await rig.readyAgent(), await rig.readyAgent()]
    const pods = [rig.pod('web-0'), rig.pod('web-1')]
    for (const [i, pod] of pods.entries()) rig.upstream(`u${i}`, [pod, rig.pod(`stays-${i}`)])
    await rig.settled()
    for (const [i, pod] of pods.entries()) {
      rig.end(pod)
      const { body } = await callHook({ port: agents[i]?.port ?? 0, from: pod.ip })
      expect(body).to.include({ evidence: 'observed' })
    }
    await until('all are out', () => pods.every((_, i) => rig.nodes(`upstreams/u${i}`).length === 1))
  })

  test('the leader cannot reach the Admin API: the other writes for it', async start => {
    const rig = await start({ agent: false })
    // A leader that has a Lease but no Admin API.
    const lame = await rig.startAgent({ APISIX_ADMIN_URL: 'http://127.0.0.1:9' })
    await until('it leads', () => says(lame, 'this agent holds the Lease'))
    const follower = await rig.startAgent()
    await until('the other follows', () => says(follower, 'another agent holds the Lease'))
    await until('it is ready', () => follower.missing().length === 0)
    const pods = [rig.pod('web-0'), rig.pod('web-1')]
    rig.upstream('web', [...pods, rig.pod('stays')])
    await rig.settled()
    await until('it lists all', () => follower.nodes('upstreams/web') === 3)
    for (const pod of pods) {
      rig.end(pod)
      const { body } = await callHook({ port: follower.port, from: pod.ip })
      expect(body).to.include({ evidence: 'observed' })
    }
    expect(rig.nodes('upstreams/web')).to.have.length(1)
  })

  test('the leader gets SIGTERM: it gives its Lease back at once, takes no new hook, and answers the one that it holds', async start => {
    const rig = await start({ agent: false, barrier: true })
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 20 }), rig.pod('web-2')]
    const backend = await rig.serve(old)
    rig.upstream('web', [old])
    await rig.settled()
    void fetch(`${rig.gateways[0]!.urls.proxy}/?hold`).catch(() => {})
    await until('a request is at the pod', () => backend.open > 0)
    rig.upstream('web', [old, fresh])
    await rig.settled()
    const agent = await startAgentProcess(rig)
    try {
      await until('it leads', () => holder(rig) !== '')
      rig.end(old)
      const hook = callHook({ port: agent.port, from: old.ip })
      const get = (path: string) => fetch(`http://127.0.0.1:${agent.port}/${path}`)
      const metrics = async () => await (await get('metrics')).text()
      await until('the hook is held', async () => (await metrics()).includes('apisix_drain_hook_waiting 1'))
      await rig.entryIs('sealed', old)
      const ended = agent.end('SIGTERM')
      await until('nobody holds the Lease', () => holder(rig) === '')
      expect((await get('readyz')).status).to.equal(503)
      expect(await callHook({ port: agent.port, from: old.ip }).catch(() => 'cut')).to.equal('cut')
      backend.release()
      expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(await ended).to.equal(0)
      expect(agent.lines().at(-1)).to.include({ msg: 'stopped' })
      expect(JSON.stringify(agent.lines()), 'each step ended in its time').not.to.contain('did not finish')
    } finally {
      await agent.end('SIGKILL')
    }
  })

  test('the snapshot shows the leader', async start => {
    const rig = await start({ config: { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' } })
    const { follower } = await pair(rig)
    const { agent } = await follower.state()
    expect(agent.leader).to.include({
      leads: false,
      holder: holder(rig),
      why: 'another agent holds the Lease'
    })
  })
})
