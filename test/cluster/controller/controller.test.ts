import { expect } from 'chai'
import { CONTROLLER_VERSION } from '../../install/controller-build.ts'
import { scaleAgent } from '../agent.ts'
import { answered, endedInTime, lostNothing, observing, PROVED } from '../scenario.ts'
import { world } from '../setup.ts'
import { together } from '../together.ts'
import { ALONE, leads, SIDE_BY_SIDE, start, stopAll } from './scenarios.ts'

/**
 * The real ingress controller writes the upstreams, through the Admin API stand-in, for real nginx with the plugin. Pods,
 * kubelets and Kubernetes' controllers are real as well. Controller 2.x does not run: its releases are in no package registry that
 * this suite uses.
 */
describe(`ends of pods under load, beside the real ingress controller ${CONTROLLER_VERSION}`, () => {
  const [atOnce, oneByOne] = [together(4), together(1)]
  before(async () => {
    await scaleAgent(world(), 2)
    await leads(start())
  })
  after(async function () {
    this.timeout(120_000)
    await stopAll()
  })

  for (const [side, scenarios] of [
    [atOnce, SIDE_BY_SIDE],
    [oneByOne, ALONE]
  ] as const)
    for (const scenario of scenarios) {
      const seen = observing(side, scenario)
      it(`loses no request: ${scenario.title}`, async () => {
        const result = await seen()
        lostNothing(result)
        endedInTime(result, scenario.ends)
        expect(result.hooks.length).to.equal(scenario.ends)
        answered(result, PROVED)
      })
    }
})
