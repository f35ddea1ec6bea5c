import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { helperLog } from './helper-log.ts'
import type { Arm } from './objects/workload.ts'
import { inWords, type Observed } from './rollout.ts'
import { world } from './setup.ts'
import { REPLICAS, SLOW, tenPods } from './ten-pods.ts'

/**
 * The update to the arm `next` ends pods of the arm `arm`. The first run has no agent: an agent also drains pods without a
 * hook, and then few of their requests fail. `npm run bench:cluster` measures the duration of the updates.
 */
const RUNS: readonly { readonly agents: number; readonly arm: Arm; readonly next: Arm }[] = [
  { agents: 0, arm: 'none', next: 'apisix-drain' },
  ...Array.from({ length: 4 }, () => ({ agents: 2, arm: 'apisix-drain', next: 'apisix-drain' }) as const),
  { agents: 2, arm: 'apisix-drain', next: 'apisix-drain-hook' }
]

/**
 * Ten pods, 25 % surge and 25 % unavailable, GET and POST with and without keep-alive. nginx tries another node after a refused
 * connection, and retries a lost GET. So without a hook the only lost requests are POSTs that the app drops at SIGTERM.
 */
describe('a rolling update of ten pods under load', () => {
  const seen: { readonly agents: number; readonly arm: Arm; readonly observed: Observed }[] = []
  const of = (agents: number, arm: Arm) =>
    seen.filter(run => run.agents === agents && run.arm === arm).map(({ observed }) => observed)
  const { update, restart, during } = tenPods()
  const reported = helperLog()

  for (const { agents, arm, next } of RUNS)
    it(`runs to its end with ${arm} and ${agents} agents`, async () => {
      await scaleAgent(world(), agents)
      const observed = await during(
        () =>
          arm === next
            ? restart()
            : update({ arm: next, ...(next === 'apisix-drain-hook' && reported.options) }),
        SLOW
      )
      console.log(`      ${inWords(observed)}`)
      expect(observed.ended.length).to.equal(REPLICAS)
      seen.push({ agents, arm, observed })
    })

  it('fails requests with neither hook nor agent: the load detects failures', () => {
    const failed = of(0, 'none').reduce((sum, { load }) => sum + load.failed, 0)
    expect(failed).to.be.greaterThan(0)
  })

  it('fails none with apisix-drain, five times of five', () => {
    expect(of(2, 'apisix-drain').map(({ load }) => load.failed)).to.deep.equal([0, 0, 0, 0, 0])
  })

  it('fails none with hooks by the helper, and each helper reports its times', async () => {
    const { load, hooks } = await during(restart)
    expect(load.failed).to.equal(0)
    expect(hooks).to.have.length(REPLICAS)
    expect(reported.read()).to.have.length(REPLICAS)
  })
})
