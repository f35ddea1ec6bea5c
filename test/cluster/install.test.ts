import { expect } from 'chai'
import { createKinds } from '../install/controller.ts'
import { answers, doctor, installAgent } from './agent.ts'
import { leads, start, stopAll, WITHOUT_PLUGIN } from './controller/scenarios.ts'
import { NAMESPACE } from './objects/workload.ts'
import { underLoad } from './rollout.ts'
import { answered, endedInTime, observing } from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'
import type { Workload } from './world.ts'

/** The steps of an operator, in order. The gateways' objects are like those of the official chart. */
describe('the chart on the cluster', () => {
  let web: Workload
  const withoutPlugin = observing(together(1), WITHOUT_PLUGIN)
  after(async () => {
    await stopAll()
    await web?.remove()
  })

  const endOne = () =>
    underLoad(world(), web, {
      ends: 1,
      async act() {
        const pod = web.pods().find(({ goneAt, isReady }) => !goneAt && isReady)
        await world().kube('delete', 'pod', pod?.name ?? '', `--namespace=${NAMESPACE}`)
      }
    })

  it('is ready without the plugin', async () => {
    const options = { name: 'first', arm: 'apisix-drain', replicas: 2 } as const
    ;[web] = await Promise.all([world().run(options), installAgent(world())])
  })

  it('answers its first hook', async () => {
    const { load, ended } = await endOne()
    expect(ended.length).to.equal(1)
    expect(load.failed, JSON.stringify(load.failures)).to.equal(0)
    const given = await answers(world())
    expect(Object.values(given), JSON.stringify(given)).to.deep.equal([1])
  })

  it('passes doctor, which warns only that the plugin is not used', async () => {
    const said = await doctor(world())
    expect(said).to.match(/\n\d+ ok, 1 warnings?, 0 failed: the agent can work here\n$/)
    expect(said).to.match(/^warn +barrier: .*the plugin is not used/m)
  })

  it(`ends every pod in time, beside the real ingress controller: ${WITHOUT_PLUGIN.title}`, async () => {
    await createKinds(world().cluster.controlPlane)
    await world().kube('wait', 'crd', '--all', '--for=condition=Established', '--timeout=60s')
    await leads(start())
    const observed = await withoutPlugin()
    endedInTime(observed, WITHOUT_PLUGIN.ends)
    answered(observed, 'drained/observed')
  })

  it('proves by the barrier once the plugin is configured', async () => {
    await installAgent(world(), { 'config.apisix.barrier': { scheme: 'http' } })
    const { load, ended } = await endOne()
    expect(ended.length).to.equal(1)
    expect(load.failed, JSON.stringify(load.failures)).to.equal(0)
    expect(await answers(world())).to.deep.equal({ 'drained/barrier': 1 })
    const said = await doctor(world())
    const barriers = /^ok {4}barrier: (.+): fit/m.exec(said)?.[1]?.split(', ') ?? []
    expect(barriers, said).to.have.length(world().gateways.proxies.length)
    expect(said).to.include(', 0 warnings, 0 failed')
  })
})
