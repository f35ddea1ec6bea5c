import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { sideBySide } from '../build/side-by-side.ts'

// Only the owner knows the nodes that a holder should list (docs/decisions/0024).

describe('feature: one Service, and an upstream for each of its two versions', () => {
  const test = sideBySide()

  for (const barrier of [false, true])
    test(`no version is given a pod of the other, though each write finds young pods of the Service missing (${barrier ? 'with' : 'without'} the plugin)`, async start => {
      const rig = await start({ barrier })
      const names = ['v1-old', 'v1-new', 'v2-old', 'v2-new'] as const
      const pods = names.map(name => rig.pod(name))
      await Promise.all(pods.map(pod => rig.serve(pod)))
      const [old1, new1, old2, new2] = pods as [
        (typeof pods)[0],
        (typeof pods)[0],
        (typeof pods)[0],
        (typeof pods)[0]
      ]
      rig.service('web', pods)
      rig.put('upstreams', 'v1', { type: 'roundrobin', nodes: arrayOf([old1, new1]) })
      rig.put('upstreams', 'v2', { type: 'roundrobin', nodes: arrayOf([old2, new2]) })
      rig.put('routes', 'v1', { uri: '/v1', upstream_id: 'v1' })
      rig.put('routes', 'v2', { uri: '/v2', upstream_id: 'v2' })
      await rig.settled()
      await until('the inventory has both', () =>
        ['v1', 'v2'].every(id => rig.agent.nodes(`upstreams/${id}`) === 2)
      )
      rig.end(old1)
      rig.end(old2)
      const replies = await Promise.all([rig.hook(old1), rig.hook(old2)])
      for (const { body } of replies) expect(body).to.include({ result: 'drained' })
      // With the barrier the agent writes only once the pods are gone.
      rig.gone(old1)
      rig.gone(old2)
      await until('both are out', () => ['v1', 'v2'].every(id => rig.nodes(`upstreams/${id}`).length === 1))
      expect(rig.nodes('upstreams/v1')).to.deep.equal([new1.node])
      expect(rig.nodes('upstreams/v2')).to.deep.equal([new2.node])
    })
})
