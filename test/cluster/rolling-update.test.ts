import { expect } from 'chai'
import { scaleAgent } from './agent.ts'
import { NAMESPACE, type Arm } from './objects/workload.ts'
import { inWords, restart, underLoad, type Observed } from './rollout.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

/** The arm is that of the pods that end; the update to the next arm ends pods of the one before. */
const RUNS: readonly (readonly [Arm, next?: Arm])[] = [
  ['none'],
  ['none'],
  ['none', 'sleep'],
  ['sleep', 'apisix-drain'],
  ['apisix-drain'],
  ['apisix-drain'],
  ['apisix-drain'],
  ['apisix-drain'],
  ['apisix-drain']
]
const REPLICAS = 10
/** As an app that has something to load. Without it a rollout here is as long as two cores take to start ten pods. */
const STARTUP_MS = 3000
/** How long each answer takes. */
const ANSWER_MS = 200
const SLEEP_MS = 5000
const HOOK_MS = 100

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/**
 * Ten pods, 25 % and 25 %, GET and POST with and without keep-alive. nginx tries another node after a refused connection, and
 * repeats a GET that was lost, so what is lost without a hook are POSTs that the app had accepted: it drops them at SIGTERM.
 */
describe('a rolling update of ten pods under load', () => {
  const seen: { readonly arm: Arm; readonly observed: Observed }[] = []
  const of = (arm: Arm) => seen.filter(run => run.arm === arm).map(({ observed }) => observed)
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
    // It would take pods without the hook out as well, and most of their requests would not fail.
    await scaleAgent(world(), 0)
  })
  after(() => web?.remove())

  for (const [arm, next] of RUNS)
    it(`runs to its end with ${arm}`, async () => {
      if (arm === 'apisix-drain') await scaleAgent(world(), 2)
      const observed = await underLoad(
        world(),
        web,
        async () => {
          if (next === undefined) return restart(world(), web)
          await web.update({ arm: next })
          await world().kube('rollout', 'status', web.target, `--namespace=${NAMESPACE}`, '--timeout=100s')
          return undefined
        },
        { answerMs: ANSWER_MS }
      )
      console.log(`      ${inWords(observed)}`)
      expect(observed.ended.length).to.equal(REPLICAS)
      seen.push({ arm, observed })
    })

  it('fails requests where there is no hook: the load can tell', () => {
    expect(of('none').every(({ load }) => load.failed > 0)).to.equal(true)
  })

  it('fails none with apisix-drain, five times of five', () => {
    expect(of('apisix-drain').map(({ load }) => load.failed)).to.deep.equal([0, 0, 0, 0, 0])
  })

  it('takes no more than a tenth longer than without a hook', () => {
    const [none, drain] = [
      median(of('none').map(({ seconds }) => seconds)),
      median(of('apisix-drain').map(({ seconds }) => seconds))
    ]
    console.log(`      medians: ${none.toFixed(1)} s without a hook, ${drain.toFixed(1)} s with apisix-drain`)
    expect(drain).to.be.below(none * 1.1)
  })

  it('has hooks that return within 100 ms where no request has to be waited for', async () => {
    await web.update({ arm: 'apisix-drain-hook', startupMs: 0 })
    await world().kube('rollout', 'status', web.target, `--namespace=${NAMESPACE}`, '--timeout=100s')
    const { load, hooksMs } = await underLoad(world(), web, () => restart(world(), web))
    expect(load.failed).to.equal(0)
    const hook = median(hooksMs)
    // What a hook costs that only sleeps is the machine's own time for an exec: where that is busy, nothing is quick.
    const exec = median(of('sleep').flatMap(({ hooksMs }) => hooksMs)) - SLEEP_MS
    console.log(`      medians: ${hook.toFixed(0)} ms, of which an exec alone takes ${exec.toFixed(0)} ms`)
    expect(hook).to.be.below(Math.max(HOOK_MS, 3 * exec))
  })
})
