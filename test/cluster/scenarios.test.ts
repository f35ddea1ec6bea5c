import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { ENDS } from './ends.ts'
import {
  answered,
  begin,
  endedInTime,
  finish,
  kube,
  lostNothing,
  observe,
  oneOf,
  PROVED
} from './scenario.ts'
import { world } from './setup.ts'

describe('ends of pods under load, with apisix-drain', () => {
  for (const [index, { title, options = {}, ends, act, uncounted = false }] of ENDS.entries())
    it(`loses no request: ${title}`, async () => {
      const observed = await observe(`scenario-${index}`, options, act)
      lostNothing(observed)
      endedInTime(observed, ends)
      expect(observed.hooks.length).to.be.at.least(ends)
      if (!uncounted) answered(observed, ...PROVED)
    })

  for (const grace of [0, 1, 5, 30])
    it(`a pod with ${grace} s of grace is gone by then`, async () => {
      const { ended } = await observe(`grace-${grace}`, { graceSeconds: grace || 30 }, async web => {
        await kube('delete', 'pod', oneOf(web), ...(grace === 0 ? ['--grace-period=0', '--force'] : []))
      })
      expect(ended.length).to.equal(1)
      // The kubelet lets two seconds pass at the end of a grace, and takes some to clear up.
      for (const { endingAt = 0, goneAt = 0 } of ended)
        expect(goneAt - endingAt).to.be.below((grace + 7) * 1000)
    })

  it('every pod ends within its grace by the fallback when the agents are taken away in the middle', async () => {
    const observed = await observe('abandoned', { replicas: 6 }, async web => {
      await begin(web)
      await scaleAgent(world(), 0)
      await finish(web)
      // An agent finishes the hooks that it holds, and the first rollout may be over by then: nobody answers in this one.
      await begin(web)
      await finish(web)
    })
    await scaleAgent(world(), 2)
    endedInTime(observed, 12)
    expect(Math.max(...observed.hooks.map(({ ms }) => ms))).to.be.at.least(5000)
  })
})
