import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { get } from '../build/load.ts'
import { sideBySide } from '../build/side-by-side.ts'

const DAEMON_SET = { kind: 'DaemonSet', name: 'web' }

describe('feature: pods whose successor has the same address', () => {
  const test = sideBySide({ barrier: false })

  test('without the plugin the upstream is not written either, since nobody would add the node again: hooks are refused', async start => {
    const rig = await start()
    const options = { hostNetwork: true, owner: DAEMON_SET }
    const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, options))
    const nodes = pods.map(({ ip, port }, i) => ({ host: ip, port, weight: i + 1, metadata: { rack: i } }))
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes })
    await rig.settled()
    await until('the inventory has it', () => rig.agent.nodes('upstreams/web') === 3)
    for (const pod of pods) {
      rig.end(pod)
      expect((await rig.hook(pod)).status).to.equal(503)
      rig.gone(pod)
      rig.pod(`${pod.name}-next`, { ...options, ip: pod.ip })
    }
    expect(rig.writes).to.deep.equal([])
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
