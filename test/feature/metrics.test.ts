import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import { SHORT, type Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** A value of `/metrics`; `undefined` if there is no such series. */
async function value({ agent }: Rig, series: string): Promise<number | undefined> {
  const line = (await agent.metrics()).split('\n').find(line => line.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

/** A long wait: the agent polls an idle gateway only every 5 s. */
const of = (metric: string, { name }: Gateway) => `apisix_drain_${metric}{gateway="apisix/${name}"}`

describe('feature: figures of each gateway', () => {
  const test = sideBySide({
    gateways: 2,
    barrier: true,
    config: SHORT
  })

  test('the requests on which the plugin of each gateway decided are counted, and a restart begins anew', async start => {
    const rig = await start()
    const [gateway, other] = rig.gateways as [Gateway, Gateway]
    const count = (decision: string, { name }: Gateway) =>
      value(rig, `apisix_drain_plugin_requests_total{gateway="apisix/${name}",decision="${decision}"}`)
    await waitFor('one begins with 0', async () => (await count('moved', gateway)) === 0)
    await waitFor('the other one too', async () => (await count('moved', other)) === 0)
    for (const decision of ['succeeded', 'refused', 'bypassed', 'late', 'error'])
      expect(await count(decision, other), decision).to.equal(0)
    Object.assign(gateway.barrier!.counts, { moved: 3, bypasses: 2, succeeded: 4, refused: 1, errors: 5 })
    await waitFor('they are counted', async () => (await count('moved', gateway)) === 3)
    const expected = { bypassed: 2, succeeded: 4, refused: 1, error: 5, late: 0 }
    for (const [decision, n] of Object.entries(expected))
      expect(await count(decision, gateway), decision).to.equal(n)
    expect(await count('moved', other), 'of another gateway').to.equal(0)
    await gateway.restart()
    await waitFor('it begins anew', async () => (await count('moved', gateway)) === 0)
  })

  test('metrics and state are made once a second, however many read them (S7)', async start => {
    const rig = await start({ config: { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' } })
    const began = performance.now()
    const texts = async (path: string) => {
      const read = async () => (await fetch(`http://127.0.0.1:${rig.agent.port}${path}`)).text()
      return new Set(await Promise.all(Array.from({ length: 200 }, read))).size
    }
    const made = [await texts('/api/state'), await texts('/metrics')]
    const most = 2 + (performance.now() - began) / 1000
    expect(Math.max(...made)).to.be.at.most(most)
  })

  test('a gateway that answers no call is unfit, and blamed for the drain that expires', async start => {
    const rig = await start()
    const [good, bad] = rig.gateways as [Gateway, Gateway]
    const [old] = await pair(rig, { graceSeconds: 4 })
    await until('the agent lists both', () => rig.agent.nodes('upstreams/web') === 2)
    await waitFor('both are fit', async () => (await value(rig, of('gateway_unfit', bad))) === 0)
    expect(await value(rig, of('gateway_expired_total', bad)), 'its series begins at once').to.equal(0)
    await bad.partition({ control: 'silent', barrier: 'silent' })
    await waitFor('it is unfit', async () => (await value(rig, of('gateway_unfit', bad))) === 1)
    const { body } = await rig.drain(old)
    expect(body.result).to.equal('unproved')
    await waitFor('it counts', async () => (await value(rig, of('gateway_expired_total', bad))) === 1)
    expect(await value(rig, of('gateway_expired_total', good))).to.equal(0)
    expect(await value(rig, of('gateway_unfit', good))).to.equal(0)
  })
})
