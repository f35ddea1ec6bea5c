import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { ENDS } from './ends.ts'
import { endedInTime, lostNothing, observe } from './scenario.ts'
import { world } from './setup.ts'

/** So long that several POSTs are in flight to each pod at any time, in ms. */
const ANSWER_MS = 300
const SLEEP_MS = 5000

/** What the same ends of pods cost without us, so that the zeros of the other suite say something. */
describe('ends of pods under load, without an agent', () => {
  before(async function () {
    this.timeout(180_000)
    await scaleAgent(world(), 0)
  })
  after(() => scaleAgent(world(), 2))

  for (const [index, { title, options, ends, act }] of ENDS.filter(({ compared }) => compared).entries()) {
    it(`loses requests without a hook: ${title}`, async () => {
      const observed = await observe(`none-${index}`, { ...options, arm: 'none' }, act, {
        answerMs: ANSWER_MS
      })
      endedInTime(observed, ends)
      expect(observed.load.failed, 'the load cannot tell').to.be.greaterThan(0)
    })

    it(`loses time with sleep 5: ${title}`, async () => {
      const observed = await observe(`sleep-${index}`, { ...options, arm: 'sleep' }, act, {
        answerMs: ANSWER_MS
      })
      endedInTime(observed, ends)
      lostNothing(observed)
      expect(observed.hooks.length).to.equal(ends)
      expect(Math.min(...observed.hooks.map(({ ms }) => ms))).to.be.at.least(SLEEP_MS)
    })
  }
})
