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
  before(() => scaleAgent(world(), 0))

  for (const [index, end] of ENDS.filter(({ compared }) => compared).entries()) {
    const { title, ends, act, alone } = end
    const options = { ...end.options, arm: 'none' } as const
    const none = observing(alone ? oneByOne : atOnce, { name: `none-${index}`, options, ends, act, load })

    it(`loses requests without a hook: ${title}`, async () => {
      const observed = await none()
      endedInTime(observed, ends)
      expect(observed.load.failed, 'the load cannot tell').to.be.greaterThan(0)
    })
  }
})
