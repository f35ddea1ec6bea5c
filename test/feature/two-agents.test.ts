import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: two agents that share nothing', () => {
  const test = sideBySide({ gateways: 2 })

  for (const barrier of [false, true]) {
    const evidence = barrier ? 'barrier' : 'observed'
    test(`both answer any hook, and neither undoes the other's work (${evidence})`, async start => {
      const rig = await start({ barrier })
      const first = rig.agent
      const second = await rig.startAgent()
      await until('both are ready', () => [first, second].every(agent => agent.missing().length === 0))
      const old = Array.from({ length: 8 }, (_, i) => rig.pod(`old-${i}`))
      const fresh = [rig.pod('new-0'), rig.pod('new-1')]
      rig.put('upstreams', 'map', { nodes: Object.fromEntries([...old, ...fresh].map(pod => [pod.node, 1])) })
      rig.upstream('list', [...old, ...fresh])
      await rig.settled()
      await until('both list all', () => [first, second].every(agent => agent.nodes('upstreams/list') === 10))

      for (const pod of old) rig.end(pod)
      const answers = await Promise.all(
        old.map((pod, i) => callHook({ port: (i % 2 === 0 ? first : second).port, from: pod.ip }))
      )
      for (const { body } of answers) expect(body).to.include({ evidence })
      await until('no holder lists an ending pod', () =>
        ['upstreams/map', 'upstreams/list'].every(key => rig.nodes(key).length === fresh.length)
      )
      expect(rig.nodes('upstreams/map').toSorted()).to.deep.equal(fresh.map(pod => pod.node).toSorted())
    })
  }
})
