import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { sideBySide } from '../build/side-by-side.ts'

const DAEMON_SET = { kind: 'DaemonSet', name: 'web' }

describe('feature: pods whose next one has the same address', () => {
  const test = sideBySide({ barrier: false })

  for (const hooks of [true, false])
    test(`an upstream of three nodes has three nodes after all were rolled, with their weights (${hooks ? 'with' : 'without'} hooks)`, async start => {
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
})
