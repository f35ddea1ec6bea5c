import { expect } from 'chai'
import { answers, doctor, installAgent } from './agent.ts'
import { NAMESPACE } from './objects/workload.ts'
import { underLoad } from './rollout.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

/** The steps of an operator, in order. The gateways' objects are like those of the official chart. */
describe('the chart on the cluster', () => {
  let web: Workload
  after(() => web?.remove())

  const endOne = () =>
    underLoad(world(), web, {
      ends: 1,
      async act() {
        const pod = web.pods().find(({ goneAt, isReady }) => !goneAt && isReady)
        await world().kube('delete', 'pod', pod?.name ?? '', `--namespace=${NAMESPACE}`)
      }
    })

  it('is ready without the plugin', () => installAgent(world()))

  it('answers its first hook', async () => {
    web = await world().run({ name: 'first', arm: 'apisix-drain', replicas: 2 })
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
