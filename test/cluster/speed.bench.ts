/**
 * `npm run bench:cluster`: how long rolling updates and hooks take on real kubelets. On a busy machine, two equal updates
 * differ by up to a fifth, with or without hooks. So the suite does not check these times.
 */
import { expect } from 'chai'
import { helperLog } from './helper-log.ts'
import type { Arm } from './objects/workload.ts'
import { tenPods, SLOW } from './ten-pods.ts'

/** Odd, so that one of the ratios is their median. */
const PAIRS = 9
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
const inTurn = (values: readonly number[], digits: number) =>
  values.map(value => value.toFixed(digits)).join(', ')

describe('the speed of a rolling update of ten pods under load', () => {
  const { update, restart, during } = tenPods()

  // The two arms take turns, so that other load on the machine slows down both.
  it('takes no more than a tenth longer with the hook (median of the pairs)', async function () {
    this.timeout(PAIRS * 120_000)
    const seconds: Record<'none' | 'apisix-drain', number[]> = { none: [], 'apisix-drain': [] }
    const measure = async (arm: keyof typeof seconds, next: Arm) => {
      const observed = await during(() => update({ arm: next }), SLOW)
      seconds[arm].push(observed.seconds)
    }
    for (let pair = 1; pair <= PAIRS; pair += 1) {
      await measure('none', 'apisix-drain')
      await measure('apisix-drain', pair < PAIRS ? 'none' : 'bare')
    }
    const ratios = seconds['apisix-drain'].map((value, pair) => value / (seconds.none[pair] ?? Number.NaN))
    console.log(`      without a hook ${inTurn(seconds.none, 1)} s`)
    console.log(`      with apisix-drain ${inTurn(seconds['apisix-drain'], 1)} s`)
    console.log(`      ratios ${inTurn(ratios, 2)}, median ${median(ratios).toFixed(2)}`)
    expect(median(ratios)).to.be.below(1.1)
  })

  it('in a hook by the helper, the helper itself takes less time than an exec of a no-op (medians)', async () => {
    const reported = helperLog()
    const returned = async (act: () => Promise<void>) => {
      const { hooks } = await during(act)
      return median(hooks.map(({ ms }) => ms))
    }
    // The ending pods have the hook `bare`, which does nothing. So requests may fail here.
    const nothing = await returned(() => update({ arm: 'apisix-drain-hook', ...reported.options }))
    const hook = await returned(restart)
    const times = reported.read()
    const helper = median(times.map(({ all }) => all))
    const held = median(times.map(({ held: ms }) => ms))
    const [a, b, c, d] = [nothing, hook, helper, held].map(ms => `${ms.toFixed(0)} ms`)
    console.log(
      `      medians: exec of nothing ${a}, hook ${b}, the helper itself ${c}, of it held by the agent ${d}`
    )
    expect(helper).to.be.below(nothing)
  })
})
