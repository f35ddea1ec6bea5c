import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { pair, serving } from '../build/pair.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: the API server is away', () => {
  const test = sideBySide()

  test('a pod that disappeared while the API server was down is forgotten, and its node removed', async start => {
    const rig = await start()
    const [old, fresh] = await pair(rig)
    const back = rig.kubernetes.faults.restart({ downMs: 300 })
    rig.end(old)
    rig.gone(old)
    await back
    await until('the ghost is out', () => rig.nodes('upstreams/web').length === 1)
    await until('nothing is being drained', () => rig.agent.loop.drains().size === 0)
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
  })
})

describe('feature: the agent itself is restarted in the middle of a drain', () => {
  const test = sideBySide({ gateways: 2 })

  test('with the barrier a new agent seals again the entries that the old one had left to expire', async start => {
    const rig = await start({ barrier: true })
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 20 }), rig.pod('web-2')]
    const backends = await serving(rig, old, fresh)
    const slow = [1, 2].map(() => fetch(`${rig.gateways[0]!.urls.proxy}/?hold`))
    const others = [1, 2].map(() => fetch(`${rig.gateways[0]!.urls.proxy}/?hold`))
    await until('requests are at the pod', () => backends[0].open > 0)
    const first = rig.drain(old).catch(() => 'broken off')
    await rig.entryIs('sealed', old)
    await rig.agent.close()
    expect(await first).to.equal('broken off')
    await rig.gateways[1]!.restart()
    await rig.readyAgent()
    const again = rig.hook(old)
    await rig.entryIs('sealed', old)
    for (const backend of backends) backend.release()
    // The proof must come whether or not the old agent has removed the node from its holder.
    const { body } = await again
    expect(body.evidence).to.equal('barrier')
    expect(body.result).to.equal('drained')
    for (const one of [...slow, ...others]) await (await one).text()
  })
})
