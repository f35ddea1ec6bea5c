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
  observing,
  oneOf,
  PROVED
} from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'

describe('ends of pods under load, with apisix-drain', () => {
  const [atOnce, oneByOne] = [together(3), together(1)]
  before(() => scaleAgent(world(), 2))

  for (const grace of [0, 1, 5]) {
    const seen = observing(atOnce, {
      name: `grace-${grace}`,
      options: { graceSeconds: grace || 30 },
      ends: 1,
      async act(web) {
        await kube('delete', 'pod', oneOf(web), ...(grace === 0 ? ['--grace-period=0', '--force'] : []))
      }
    })
    // The reserve is longer than such a grace, so the kubelet may end the hook. The program still gets SIGTERM, and is not killed.
    it(`a pod with ${grace} s of grace ends`, async () => {
      const observed = await seen()
      expect(observed.ended).to.have.length(1)
      if (grace > 0) endedInTime(observed, 1)
    })
  }

  for (const [index, { title, options = {}, ends, act, alone, uncounted }] of ENDS.entries()) {
    const side = alone ? oneByOne : atOnce
    const seen = observing(side, { name: `scenario-${index}`, options, ends, act })
    it(`loses no request: ${title}`, async () => {
      const observed = await seen()
      lostNothing(observed)
      endedInTime(observed, ends)
      expect(observed.hooks.length).to.be.at.least(ends)
      if (!uncounted) answered(observed, PROVED)
    })
  }

  const abandoned = observing(oneByOne, {
    name: 'abandoned',
    options: { replicas: 6 },
    ends: 12,
    async act(web) {
      await begin(web)
      await scaleAgent(world(), 0)
      await finish(web)
      // A stopping agent first answers its held hooks, so the first rollout may be over by then. During this second rollout no agent runs.
      await begin(web)
      await finish(web)
    }
  })
  it('every pod ends within its grace by the fallback when the agents are removed in the middle', async () => {
    try {
      const observed = await abandoned()
      endedInTime(observed, 12)
      expect(observed.hooks).to.have.length(12)
      expect(Math.max(...observed.hooks.map(({ ms }) => ms))).to.be.at.least(5000)
    } finally {
      await scaleAgent(world(), 2)
    }
  })
})
