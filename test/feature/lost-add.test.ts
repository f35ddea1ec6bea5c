import { expect } from 'chai'
import { systemClock } from '../../agent/base/clock.ts'
import { CodedError } from '../../agent/base/errors.ts'
import { holdersOf } from '../../agent/gateway/apisix/holders.ts'
import { createWriter } from '../../agent/gateway/write/writer.ts'
import { createAmends } from '../../agent/upkeep/amends.ts'
import type { Holder } from '../../agent/rules/plan/holder.ts'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import { silent, startAdmin, until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { sideBySide } from '../build/side-by-side.ts'

// The Admin API has no conditional writes. The agent restores only nodes that its own write has certainly removed,
// because only the owner knows the nodes that a holder should list (docs/decisions/0024).

const array = (...hosts: string[]) => hosts.map(host => ({ host, port: 80, weight: 100 }))

describe('a replacement that its owner adds before our cut-off write is applied', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  beforeEach(async () => (apisix = await startAdmin()))
  afterEach(() => apisix.close())

  for (const looksAgain of [true, false])
    it(looksAgain ? 'is put back unchanged' : 'would be lost without another check', async () => {
      const value = (...hosts: string[]) => ({ type: 'roundrobin', nodes: array(...hosts) })
      apisix.put('upstreams', 'web', value('10.0.0.1', '10.0.0.2'))
      const amends = createAmends({
        podsAt: () => '',
        isLeaving: node => node.startsWith('10.0.0.1'),
        now: () => systemClock.now()
      })
      let late: (() => Promise<unknown>) | undefined
      const writer = createWriter({
        admin: {
          ...apisix.client,
          patch: (...all) => {
            if (late) return apisix.client.patch(...all)
            late = () => apisix.client.patch(...all)
            return Promise.reject(new CodedError('ADMIN_TIMEOUT', 'PATCH upstreams/web'))
          }
        },
        inventory: { learn() {}, forget() {} },
        clock: systemClock,
        log: silent,
        wrote: one => amends.wrote(one),
        wishes: (target, found) => amends.wishes(target, found)
      })
      const look = async () => {
        for (const target of amends.targets(systemClock.now() + 100_000)) writer.tend(target)
        await writer.idle()
      }
      const [holder] = holdersOf({
        resource: 'upstreams',
        id: 'web',
        value: apisix.value('upstreams', 'web') ?? {},
        revision: 0
      })
      const uid = 'old' as PodUid
      writer.submit({ holder: holder as Holder, nodes: [{ key: '10.0.0.1:80', uid }] })
      await writer.idle()
      apisix.put('upstreams', 'web', value('10.0.0.2', '10.0.0.3'))
      await look()
      await late?.()
      expect(apisix.nodes('web')).to.deep.equal(array('10.0.0.2'))
      if (looksAgain) await look()
      await writer.stop()
      expect(apisix.nodes('web')).to.deep.equal(
        looksAgain ? array('10.0.0.2', '10.0.0.3') : array('10.0.0.2')
      )
    })
})

describe('feature: one Service, and an upstream for each of its two versions', () => {
  const test = sideBySide({ config: { DRAIN_DEFER_WRITES: '0s' } })

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
      const labels = { 'managed-by': 'apisix-ingress-controller' }
      rig.put('upstreams', 'v1', { type: 'roundrobin', labels, nodes: arrayOf([old1, new1]) })
      rig.put('upstreams', 'v2', { type: 'roundrobin', labels, nodes: arrayOf([old2, new2]) })
      rig.put('routes', 'v1', { uri: '/v1', upstream_id: 'v1' })
      rig.put('routes', 'v2', { uri: '/v2', upstream_id: 'v2' })
      await rig.settled()
      await until('the inventory has both', () =>
        ['v1', 'v2'].every(id => rig.agent.nodes(`upstreams/${id}`) === 2)
      )
      rig.end(old1)
      rig.end(old2)
      const replies = await Promise.all([rig.hook(old1), rig.hook(old2)])
      const result = barrier ? 'drained' : 'removed'
      for (const { body } of replies) expect(body).to.include({ result })
      // With the barrier the agent writes only once the pods are gone.
      rig.gone(old1)
      rig.gone(old2)
      await until('both are out', () => ['v1', 'v2'].every(id => rig.nodes(`upstreams/${id}`).length === 1))
      expect(rig.nodes('upstreams/v1')).to.deep.equal([new1.node])
      expect(rig.nodes('upstreams/v2')).to.deep.equal([new2.node])
    })
})
