import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { until } from '../build/apisix.ts'
import { startBalancer } from '../build/balancer.ts'
import type { HookBody } from '../build/hook.ts'
import { get } from '../build/load.ts'
import { serving } from '../build/pair.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Makes two pods behind all gateways. `old` will end. */
async function pods(rig: Rig) {
  const old = rig.pod('web-1', { graceSeconds: 30 })
  const [backend, other] = await serving(rig, old, rig.pod('web-2'))
  return { old, backend, other }
}

const portOf = (url: string | undefined) => Number(new URL(url ?? '').port)
const gradeOf = (body: HookBody, name: string) => body.gateways?.find(gateway => gateway.name === name)?.grade
/** Starts the agent with this list of gateways. Returns the pod that will end. */
const listed = async (rig: Rig, ...gateways: { name: string; host: string }[]) => {
  await rig.readyAgent({ APISIX_GATEWAYS_STATIC: JSON.stringify(gateways) })
  return (await pods(rig)).old
}
const doubts = (rig: Rig) => rig.agent.doubts()

describe('feature: the list of gateways is complete, or the answer names the doubt', () => {
  const test = sideBySide({ barrier: true, gateways: 2 })

  test('a load balancer in front of two gateways is not a gateway: it never gives evidence', async start => {
    const rig = await start({ agent: false })
    const [{ urls, host }, other] = rig.gateways as [Gateway, Gateway]
    const edge = rig.pod('edge').ip
    const ports = [portOf(urls.control), portOf(urls.barrier)]
    const balancer = await startBalancer(edge, ports, [host, other.host])
    try {
      const old = await listed(rig, { name: 'edge', host: edge })
      await until('it is found out', () => doubts(rig).some(why => why.includes('several gateways')))
      const { body } = await rig.drain(old)
      expect(body).to.include({ result: 'unproved', evidence: 'none' })
      expect(gradeOf(body, 'edge')).to.equal(undefined)
      expect(body.why).to.contain('several gateways answer at its address')
    } finally {
      await rig.agent.close()
      await balancer.close()
    }
  })

  test('one gateway listed twice is a mistake: neither entry gives evidence', async start => {
    const rig = await start({ agent: false })
    const [{ host }] = rig.gateways as [Gateway, Gateway]
    const old = await listed(rig, { name: 'one', host }, { name: 'two', host })
    await until('it is found out', () => doubts(rig).every(why => why.includes('as well')))
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'unproved', evidence: 'none' })
    expect([gradeOf(body, 'one'), gradeOf(body, 'two')]).to.deep.equal([undefined, undefined])
    expect(body.gateways?.[0]?.why).to.contain('the gateway that answers is two as well')
  })

  test('gateways listed by hand confirm, and the answer states that the list may be incomplete', async start => {
    const rig = await start({ agent: false })
    const [one, two] = rig.gateways as [Gateway, Gateway]
    const old = await listed(rig, { name: 'one', host: one.host }, { name: 'two', host: two.host })
    await until('each is known to be one', () => doubts(rig).length === 0)
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(body.why).to.contain('the gateways are listed by hand')
  })

  for (const how of ['gone', 'relabelled'] as const)
    test(`a gateway whose pod vanishes (${how}) and that still serves is polled as before`, async start => {
      const rig = await start()
      const [, leaves] = rig.gateways as [Gateway, Gateway]
      const { old, backend, other } = await pods(rig)
      const slow = Array.from({ length: 4 }, () => get(`${leaves.urls.proxy}/?hold`))
      await until('a slow request is at the pod', () => backend.open > 0)
      rig.gatewayIs(leaves, how)
      await until('the agent has seen that', () => rig.agent.gatewayReady(leaves.name) === false)
      let answered = false
      const hook = rig.drain(old).finally(() => (answered = true))
      await rig.entryIs('sealed', old)
      expect(answered).to.equal(false)
      backend.release()
      other.release()
      const { body } = await hook
      expect(body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(gradeOf(body, `apisix/${leaves.name}`)).to.equal('barrier')
      expect(await get(`${leaves.urls.proxy}/`)).to.deep.equal({ status: 200, body: 'web-2' })
      await Promise.all(slow)
    })

  test('a gateway whose pod vanishes counts until it refuses connections', async start => {
    const rig = await start()
    const [stays, leaves] = rig.gateways as [Gateway, Gateway]
    const { old } = await pods(rig)
    await leaves.partition({ barrier: 'silent', control: 'silent' })
    rig.gatewayIs(leaves, 'gone')
    await until('the agent has seen that', () => rig.agent.gatewayReady(leaves.name) === false)
    let answered = false
    const hook = rig.drain(old).finally(() => (answered = true))
    await until(
      'the other one has sealed it',
      () => stays.barrier?.entries.look(old.ip, old.port) === 'sealed'
    )
    await until('that one does not answer', () =>
      rig.agent.lines.some(
        ({ msg, gateway }) => msg === 'barrier cannot be reached' && gateway === `apisix/${leaves.name}`
      )
    )
    expect([answered, rig.agent.gatewayReady(leaves.name)]).to.deep.equal([false, false])
    await leaves.stop()
    const { body } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(body.gateways).to.have.length(1)
    expect(rig.agent.gatewayReady(leaves.name)).to.equal(undefined)
  })
})
