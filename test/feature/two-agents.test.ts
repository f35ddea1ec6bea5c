import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import { ownWay } from '../build/own-way.ts'
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

  /** Longer than the time after which the knowledge of a watch counts as too old (`agent/round/blindness.ts`). */
  const BLIND_MS = 11_000

  for (const [who, agents] of [
    ['one of two agents', 2],
    ['the only agent', 1]
  ] as const)
    test(`${who} loses its API server while a gone pod is listed: no request fails`, async start => {
      const rig = await start({ barrier: true, agent: false })
      const web = (name: string) => rig.pod(name, { owner: { kind: 'ReplicaSet', name: 'web-1a' } })
      const [old, next] = [web('web-1'), web('web-2')]
      const backend = await rig.serve(old)
      await rig.serve(next)
      rig.service('web', [old, next])
      // The owner is stuck: it never lists another pod.
      rig.upstream('web', [old])
      const way = await ownWay(rig)
      try {
        const blind = await rig.startAgent(way.settings)
        const all = agents === 2 ? [blind, await rig.startAgent()] : [blind]
        await until('all are ready', () => all.every(agent => agent.missing().length === 0))
        await rig.settled()
        rig.end(old)
        for (const agent of all)
          expect((await rig.hook(old, '', undefined, agent)).body).to.include({ evidence: 'barrier' })
        await backend.close()
        rig.gone(old)
        rig.service('web', [next])
        const isGone = () => all.every(agent => agent.loop.drains().values().next().value?.phase === 'gone')
        await until('all know that it is gone', isGone)

        const load = rig.load(50)
        const mend = await way.cut()
        await wait(BLIND_MS)
        expect(load.result.failures).to.deep.equal([])
        await mend()
        await until('it sees again', () => blind.loop.vouchForEntries().ok)
        await wait(1000)
        const { failures, by } = await load.stop()
        expect(failures).to.deep.equal([])
        expect(Object.keys(by)).to.deep.equal(['web-2'])
      } finally {
        await way.close()
      }
    })
})
