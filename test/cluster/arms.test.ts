import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { ENDS } from './ends.ts'
import { endedInTime, observing } from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'

/** Long enough for several POSTs in flight to each pod at any time, in ms. */
const ANSWER_MS = 300

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
    const none = observing(side, {
      name: `none-${index}`,
      options: { ...options, arm: 'none' },
      ends,
      act,
      load
    })

    it(`loses requests without a hook: ${title}`, async () => {
      const observed = await none()
      endedInTime(observed, ends)
      expect(observed.load.failed, 'the load cannot tell').to.be.greaterThan(0)
    })
  }
})
