import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { until } from '../build/apisix.ts'
import { SHORT, type Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** A value of `/metrics`; `undefined` if there is no such series. */
async function value({ agent }: Rig, series: string): Promise<number | undefined> {
  const text = await (await fetch(`http://127.0.0.1:${agent.port}/metrics`)).text()
  const line = text.split('\n').find(line => line.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const MS = 8000
const of = (metric: string, { name }: Gateway) => `apisix_drain_${metric}{gateway="${name}"}`

describe('feature: figures of each gateway', () => {
  const test = sideBySide({
    gateways: 2,
    barrier: true,
    config: { ...SHORT, DRAIN_MINIMUM_EVIDENCE: 'observed' }
  })

  test('a gateway that answers no call is unfit, and blamed for the drain that expires', async start => {
    const rig = await start()
    const [good, bad] = rig.gateways as [Gateway, Gateway]
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 4 }), rig.pod('web-2')]
    rig.upstream('web', [old, fresh])
    await rig.settled()
    await until('the agent lists both', () => rig.agent.nodes('upstreams/web') === 2)
    await waitFor('both are fit', async () => (await value(rig, of('gateway_unfit', bad))) === 0, MS)
    expect(await value(rig, of('gateway_expired_total', bad)), 'its series begins at once').to.equal(0)
    await bad.partition({ control: 'silent', barrier: 'silent' })
    await waitFor('it is unfit', async () => (await value(rig, of('gateway_unfit', bad))) === 1, MS)
    rig.end(old)
    const { body } = await rig.hook(old)
    expect(body.result).to.equal('deadline')
    await waitFor('it counts', async () => (await value(rig, of('gateway_expired_total', bad))) === 1, MS)
    expect(await value(rig, of('gateway_expired_total', good))).to.equal(0)
    expect(await value(rig, of('gateway_unfit', good))).to.equal(0)
  })
})
