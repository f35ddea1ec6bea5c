import { expect } from 'chai'
import { ownerOf, HOLDER, startSyncs } from '../../faults/owner.ts'
import { until } from '../../build/apisix.ts'
import { startRig } from '../../build/rig.ts'

describe('fault suite: the owner of an array', () => {
  it('lists its replacement again before the last pods end, if a write of the agent overwrote it', async () => {
    const rig = await startRig({ config: { DRAIN_DEFER_WRITES: '0s' } })
    const owner = ownerOf(rig, { mode: 'observed', form: 'array' })
    const endSyncs = startSyncs(rig, owner)
    try {
      const ending = [rig.pod('old-0', { graceSeconds: 15 }), rig.pod('old-1', { graceSeconds: 15 })]
      for (const pod of ending) await rig.serve(pod)
      rig.service('web', ending)
      await owner.write(ending)
      await rig.settled()
      await until('the inventory has them', () => rig.agent.nodes(HOLDER) === 2)
      const fresh = rig.pod('new')
      await rig.serve(fresh)
      rig.service('web', [...ending, fresh])
      await rig.settled()
      const lost: (readonly string[])[] = []
      rig.apisix.store.watch(() => lost.push(rig.overwritten()))
      let added = false
      rig.admin.listener.server.on('request', ({ method }) => {
        if (method !== 'PATCH' || added) return
        added = true
        void owner.add(fresh)
      })
      for (const pod of ending) rig.end(pod)
      const replies = await Promise.all(ending.map(pod => rig.hook(pod)))
      expect(lost.flat(), 'it was overwritten').to.include(fresh.node)
      expect(replies.map(({ body }) => body.result)).to.not.include('last-endpoint')
      expect(rig.nodes(HOLDER)).to.deep.equal([fresh.node])
      expect(rig.violations()).to.deep.equal([])
    } finally {
      endSyncs()
      await rig.close()
    }
  })
})
