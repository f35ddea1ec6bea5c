import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { ENDS } from './ends.ts'
import type { Arm } from './objects/workload.ts'
import { endedInTime, lostNothing, observing } from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'

/** Long enough for several POSTs in flight to each pod at any time, in ms. */
const ANSWER_MS = 300
const SLEEP_MS = 5000

/** The same ends of pods, without the agent: requests must fail here, or zero failures with the agent would prove nothing. */
describe('ends of pods under load, without an agent', () => {
  const [atOnce, oneByOne] = [together(3), together(1)]
  const load = { answerMs: ANSWER_MS }
  before(async function () {
    this.timeout(180_000)
    await scaleAgent(world(), 0)
  })

  for (const [index, { title, options, ends, act, alone }] of ENDS.filter(
    ({ compared }) => compared
  ).entries()) {
    const side = alone ? oneByOne : atOnce
    const of = (arm: Arm) =>
      observing(side, { name: `${arm}-${index}`, options: { ...options, arm }, ends, act, load })
    const [none, sleep] = [of('none'), of('sleep')]

    it(`loses requests without a hook: ${title}`, async () => {
      const observed = await none()
      endedInTime(observed, ends)
      expect(observed.load.failed, 'the load cannot tell').to.be.greaterThan(0)
    })

    it(`loses time with sleep 5: ${title}`, async () => {
      const observed = await sleep()
      endedInTime(observed, ends)
      lostNothing(observed)
      expect(observed.hooks.length).to.equal(ends)
      expect(Math.min(...observed.hooks.map(({ ms }) => ms))).to.be.at.least(SLEEP_MS)
    })
  }
})
