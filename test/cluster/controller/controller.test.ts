import { expect } from 'chai'
import { summary } from '../../../sandbox/percentile.ts'
import { createKinds } from '../../install/controller.ts'
import { CONTROLLER_VERSION } from '../../install/controller-build.ts'
import { installAgent, scaleAgent } from '../agent.ts'
import type { Observed } from '../rollout.ts'
import { answered, endedInTime, lostNothing, observing, PROVED } from '../scenario.ts'
import { world } from '../setup.ts'
import { together } from '../together.ts'
import {
  ALONE,
  leads,
  SIDE_BY_SIDE,
  start,
  stopAll,
  WITHOUT_PLUGIN,
  type ControllerScenario
} from './scenarios.ts'

/**
 * The real ingress controller writes the upstreams, through the Admin API stand-in, for real nginx with the plugin. Pods,
 * kubelets and Kubernetes' controllers are real as well.
 */
describe(`ends of pods under load, beside the real ingress controller ${CONTROLLER_VERSION}`, () => {
  const [atOnce, oneByOne, observed] = [together(4), together(1), together(1)]
  const rows: object[] = []
  const note = ({ title }: ControllerScenario, { load, hooks, ended, writtenMs }: Observed) => {
    const { p50, p99 } = summary(hooks.map(({ ms }) => ms))
    rows.push({
      scenario: title,
      failed: `${load.failed} of ${load.requests}`,
      ended: ended.length,
      'hook p50': p50,
      p99,
      // This is the controller's time: with the plugin the agent does not write its upstreams.
      'write p50': writtenMs.length > 0 ? summary(writtenMs).p50 : '–'
    })
  }

  before(async function () {
    this.timeout(180_000)
    await scaleAgent(world(), 2)
    await createKinds(world().cluster.controlPlane)
    await world().kube('wait', 'crd', '--all', '--for=condition=Established', '--timeout=60s')
    await leads(start())
  })
  after(async function () {
    this.timeout(120_000)
    await stopAll()
    console.table(rows)
    console.log(
      'not run: ingress controller 2.x, whose releases are in no package registry that this suite uses'
    )
  })

  for (const [side, scenarios] of [
    [atOnce, SIDE_BY_SIDE],
    [oneByOne, ALONE]
  ] as const)
    for (const scenario of scenarios) {
      const seen = observing(side, scenario)
      it(`loses no request: ${scenario.title}`, async () => {
        const result = await seen()
        note(scenario, result)
        lostNothing(result)
        endedInTime(result, scenario.ends)
        expect(result.hooks.length).to.equal(scenario.ends)
        answered(result, PROVED)
      })
    }

  const withoutPlugin = observing(observed, WITHOUT_PLUGIN)
  it(`ends every pod in time: ${WITHOUT_PLUGIN.title}`, async () => {
    // Without any value, helm would keep the values of the last release.
    await installAgent(world(), { 'config.apisix.barrier': null })
    try {
      const result = await withoutPlugin()
      note(WITHOUT_PLUGIN, result)
      endedInTime(result, WITHOUT_PLUGIN.ends)
      answered(result, 'drained/observed')
    } finally {
      await installAgent(world(), { 'config.apisix.barrier': { scheme: 'http' } })
    }
  })
})
