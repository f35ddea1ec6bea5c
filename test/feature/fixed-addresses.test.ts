import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { get } from '../build/load.ts'
import type { TestPod } from '../build/pods.ts'
import { sideBySide } from '../build/side-by-side.ts'

const DAEMON_SET = { kind: 'DaemonSet', name: 'web' }

describe('feature: pods whose successor has the same address', () => {
  const test = sideBySide({ barrier: false })

  for (const hooks of [true, false])
    test(`an upstream of three nodes has the same three nodes and weights after a full rollout (${hooks ? 'with' : 'without'} hooks)`, async start => {
      const rig = await start()
      const options = { hostNetwork: true, owner: DAEMON_SET }
      const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, options))
      await Promise.all(pods.map(pod => rig.serve(pod)))
      const nodes = pods.map(({ ip, port }, i) => ({ host: ip, port, weight: i + 1, metadata: { rack: i } }))
      rig.put('upstreams', 'web', { type: 'roundrobin', nodes })
      rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
      await rig.settled()
      await until('the inventory has it', () => rig.agent.nodes('upstreams/web') === 3)
      for (const pod of pods) {
        rig.end(pod)
        if (hooks) await rig.hook(pod)
        await until('it is out', () => !rig.nodes('upstreams/web').includes(pod.node))
        rig.gone(pod)
        rig.pod(`${pod.name}-next`, { ...options, ip: pod.ip })
        await until('it is listed again', () => rig.nodes('upstreams/web').includes(pod.node))
      }
      const value = rig.apisix.store.get('/apisix/upstreams/web')?.value as { nodes: { host: string }[] }
      const byHost = (a: { host: string }, b: { host: string }) => a.host.localeCompare(b.host)
      expect(value.nodes.toSorted(byHost)).to.deep.equal(nodes.toSorted(byHost))
    })

  test('an agent that did not remove the node does not put it back: the upstream stays one node short', async start => {
    const rig = await start()
    const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, { owner: DAEMON_SET }))
    const [first, second, third] = pods as [TestPod, TestPod, TestPod]
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: arrayOf(pods) })
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    await until('the inventory has it', () => rig.agent.nodes('upstreams/web') === 3)
    const taken = async (pod: TestPod) => {
      rig.end(pod)
      await rig.hook(pod)
      await until('it is out', () => !rig.nodes('upstreams/web').includes(pod.node))
    }
    const returns = (pod: TestPod) => {
      rig.gone(pod)
      rig.pod(`${pod.name}-next`, { owner: DAEMON_SET, ip: pod.ip })
    }
    await taken(first)
    await rig.agent.close()
    const next = await rig.startAgent()
    await until('the next agent is ready', () => next.missing().length === 0)
    returns(first)
    // The agent restores only its own removals. When it has restored `second`, it would also have restored `first`.
    await taken(second)
    returns(second)
    await until('the second is listed again', () => rig.nodes('upstreams/web').includes(second.node))
    expect(rig.nodes('upstreams/web')).to.have.members([second.node, third.node])
  })

  test('with the plugin the upstream is not written at all, and the next pod gets its requests', async start => {
    const rig = await start({ barrier: true })
    const options = { hostNetwork: true, owner: DAEMON_SET }
    const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, options))
    const backends = await Promise.all(pods.map(pod => rig.serve(pod)))
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: arrayOf(pods) })
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    await until('the inventory has it', () => rig.agent.nodes('upstreams/web') === 3)
    for (const [i, pod] of pods.entries()) {
      rig.end(pod)
      expect((await rig.hook(pod)).body).to.include({ result: 'drained', evidence: 'barrier' })
      await backends[i]?.close()
      rig.gone(pod)
      const next = await rig.serve(rig.pod(`${pod.name}-next`, { ...options, ip: pod.ip }))
      const proxy = rig.gateways[0]?.urls.proxy ?? ''
      await until(
        'the next pod has requests',
        () => (void get(`${proxy}/`).catch(() => {}), next.arrivals.length > 0)
      )
    }
    expect(rig.writes).to.deep.equal([])
    expect(rig.nodes('upstreams/web')).to.have.length(3)
  })
})
