import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { helperLog } from './helper-log.ts'
import { NAMESPACE, type Arm, type WorkloadOptions } from './objects/workload.ts'
import { inWords, restart, underLoad, type Observed } from './rollout.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

/**
 * The arm is that of the ending pods; the update to the next arm ends them. First without an agent, because the agent also takes out
 * pods without a hook, so that few of their requests fail. Then with and without the hook in turn, so that other load
 * on the machine slows down both.
 */
const RUNS: readonly { readonly agents: number; readonly arm: Arm; readonly next: Arm }[] = [
  { agents: 0, arm: 'none', next: 'sleep' },
  { agents: 0, arm: 'sleep', next: 'none' },
  ...Array.from({ length: 5 }, (_, run) => [
    { agents: 2, arm: 'none', next: 'apisix-drain' } as const,
    { agents: 2, arm: 'apisix-drain', next: run < 4 ? 'none' : 'bare' } as const
  ]).flat()
]
const REPLICAS = 10
/** The startup time of a real app. Without it a rollout here takes as long as two cores need to start ten pods. */
const STARTUP_MS = 3000
/** How long each answer takes. */
const ANSWER_MS = 200
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/**
 * Ten pods, 25 % and 25 %, GET and POST with and without keep-alive. nginx tries another node after a refused connection, and
 * retries a lost GET, so without a hook the lost requests are POSTs that the app had accepted: it drops them at SIGTERM.
 */
describe('a rolling update of ten pods under load', () => {
  const seen: { readonly agents: number; readonly arm: Arm; readonly observed: Observed }[] = []
  const of = (agents: number, arm: Arm) =>
    seen.filter(run => run.agents === agents && run.arm === arm).map(({ observed }) => observed)
  const update = async (change: Partial<WorkloadOptions>) => {
    await web.update(change)
    await world().kube('rollout', 'status', web.target, `--namespace=${NAMESPACE}`, '--timeout=100s')
  }
  let web: Workload

  before(async function () {
    this.timeout(120_000)
    web = await world().run({
      name: 'web',
      arm: 'none',
      replicas: REPLICAS,
      exitsAtTerm: true,
      startupMs: STARTUP_MS
    })
  })
  after(() => web?.remove())

  for (const { agents, arm, next } of RUNS)
    it(`runs to its end with ${arm} and ${agents} agents`, async () => {
      await scaleAgent(world(), agents)
      const act = () => (arm === next ? restart(world(), web) : update({ arm: next }))
      const observed = await underLoad(world(), web, { ends: REPLICAS, act }, { answerMs: ANSWER_MS })
      console.log(`      ${inWords(observed)}`)
      expect(observed.ended.length).to.equal(REPLICAS)
      seen.push({ agents, arm, observed })
    })

  it('fails requests without a hook, with or without agents: the load detects failures', () => {
    const failed = (runs: readonly Observed[]) => runs.reduce((sum, { load }) => sum + load.failed, 0)
    expect(failed(of(0, 'none'))).to.be.greaterThan(0)
    expect(failed(of(2, 'none'))).to.be.greaterThan(0)
  })

  it('fails none with apisix-drain, five times of five', () => {
    expect(of(2, 'apisix-drain').map(({ load }) => load.failed)).to.deep.equal([0, 0, 0, 0, 0])
  })

  it('takes no more than a tenth longer than without a hook', () => {
    const [none, drain] = [of(2, 'none'), of(2, 'apisix-drain')]
    const ratios = drain.map(({ seconds }, index) => seconds / (none[index]?.seconds ?? Number.NaN))
    const inAll = (runs: readonly Observed[]) => runs.map(({ seconds }) => seconds.toFixed(1)).join(', ')
    console.log(`      without a hook ${inAll(none)} s, with apisix-drain ${inAll(drain)} s`)
    expect(median(ratios)).to.be.below(1.1)
  })

  it('in a hook by the helper, the helper itself takes less time than an exec of a no-op (medians)', async () => {
    const said = helperLog()
    const returned = async (act: () => Promise<void>) => {
      const { load, hooks } = await underLoad(world(), web, { ends: REPLICAS, act })
      expect(hooks).to.have.length(REPLICAS)
      return { failed: load.failed, ms: median(hooks.map(({ ms }) => ms)) }
    }
    // The last run left pods with hooks that do nothing. They delay no pod, and here requests may fail.
    const { ms: nothing } = await returned(() => update({ arm: 'apisix-drain-hook', ...said.options }))
    const { ms: hook, failed } = await returned(() => restart(world(), web))
    expect(failed).to.equal(0)
    const times = said.read()
    expect(times).to.have.length(REPLICAS)
    const helper = median(times.map(({ all }) => all))
    const held = median(times.map(({ held }) => held))
    const [a, b, c, d] = [nothing, hook, helper, held].map(ms => `${ms.toFixed(0)} ms`)
    console.log(
      `      medians: exec of nothing ${a}, hook ${b}, the helper itself ${c}, of it held by the agent ${d}`
    )
    expect(helper).to.be.below(nothing)
  })
})
