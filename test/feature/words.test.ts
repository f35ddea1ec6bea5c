import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { standaloneTarget } from '../../sandbox/owner/adc-target.ts'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { get } from '../build/load.ts'
import { serving } from '../build/pair.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Ends the pod. Returns its hook, the reasons why the hook waits, and the gateways' entries of the pod. */
function end(rig: Rig, pod: TestPod) {
  let answered = false
  const hook = rig.drain(pod).finally(() => (answered = true))
  const why = () => {
    const drain = rig.agent.loop.drains().get(pod.uid as never)
    return drain?.phase === 'draining' ? drain.verdict.why : ''
  }
  const held = () => rig.gateways.map(({ barrier }) => barrier?.entries.look(pod.ip, pod.port))
  return { hook, why, held, isAnswered: () => answered }
}

describe('feature: a seal rests on the word of every worker', () => {
  const test = sideBySide({ barrier: true })

  const pair = async (rig: Rig) => {
    const [old, other] = [rig.pod('web-1'), rig.pod('web-2')]
    await serving(rig, old, other)
    return { old, other }
  }
  /** Ends a pod that no other pod can replace, and waits until the agent keeps it for this reason. */
  const endLast = async (rig: Rig) => {
    const old = rig.pod('web-1')
    await serving(rig, old)
    const ended = end(rig, old)
    const isLast = () => ended.why().includes('nothing else is left in upstreams/web')
    await until('nothing else is left', isLast)
    return { old, isLast, ...ended }
  }

  /** Writes a document with these lists, each with a route of its own. The agent writes nothing in this mode. */
  const place = async (rig: Rig, lists: readonly ReturnType<typeof arrayOf>[]) => {
    const [gateway] = rig.gateways as [Gateway]
    await standaloneTarget(() => [{ url: gateway.urls.admin ?? '', key: rig.barrierToken }])({
      upstreams: lists.map((nodes, i) => ({ id: `web-${i}`, type: 'roundrobin', nodes })),
      services: [],
      routes: lists.map((_, i) => ({ id: `r-${i}`, uri: `/${i}`, upstream_id: `web-${i}` }))
    })
    const inAll = () => gateway.workers.every(({ config }) => config.list('routes').length === lists.length)
    const last = `upstreams/web-${lists.length - 1}`
    await until('all have it', () => inAll() && rig.agent.nodes(last) === lists.at(-1)?.length)
  }

  test('a frozen worker has not agreed: its gateway is not sealed before it has spoken', async start => {
    const rig = await start({ gateways: 2 })
    const { old } = await pair(rig)
    const [frozen] = rig.gateways[1]!.workers
    frozen?.freeze()
    const { hook, why, held, isAnswered } = end(rig, old)
    await until('it is said', () => why().includes('1 of 2 workers have said what they could choose instead'))
    await until('only the other is sealed', () => held().join() === 'sealed,draining')
    expect(isAnswered()).to.equal(false)
    frozen?.thaw()
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(held()).to.deep.equal(['sealed', 'sealed'])
  })

  test('a worker that starts with an old configuration has not agreed, even if the worker before it had', async start => {
    const rig = await start()
    const [gateway] = rig.gateways as [Gateway]
    const { old, hook, isLast, held } = await endLast(rig)
    gateway.killWorker(0)
    gateway.workers[0]?.loseWatch()
    const fresh = rig.pod('web-2')
    await rig.serve(fresh)
    rig.upstream('web', [old, fresh])
    await until('the other has it', () => gateway.workers[1]?.config.revision === rig.apisix.store.revision)
    await until('it is still said', isLast)
    expect(held()).to.deep.equal(['draining'])
    gateway.workers[0]?.restoreWatch()
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect((await get(`${gateway.urls.proxy}/`)).body).to.equal('web-2')
  })

  test('no other node serves: the pod is kept until one of the others is Ready', async start => {
    const rig = await start()
    const [old, other] = [rig.pod('web-1'), rig.pod('web-2', { ready: false })]
    await serving(rig, old, other)
    const { hook, why, held } = end(rig, old)
    await until('it is said', () => why().includes(`what is left does not serve: ${other.node}`))
    expect(held()).to.deep.equal(['draining'])
    rig.isReady(other, true)
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
  })

  test('words that leave out places allow no seal', async start => {
    const rig = await start({ standalone: true })
    const old = rig.pod('web-1')
    await rig.serve(old)
    const others = Array.from({ length: 18 }, (_, i) => rig.pod(`other-${i}`))
    const put = (listing: number) =>
      place(
        rig,
        others.map((other, i) => arrayOf(i < listing ? [old, other] : [other]))
      )
    await put(18)
    const { hook, held } = end(rig, old)
    const why = () => [...rig.agent.loop.status(old.uid as never).unsealed.values()].join()
    await until(
      () => `two places are left out, not: ${why()} (${held().join()})`,
      () => why().includes('leave out what is left in 2 more places')
    )
    expect(held()).to.deep.equal(['draining'])
    await put(16)
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
  })

  test('many ports of the same pods leave nothing out (A15)', async start => {
    const rig = await start({ standalone: true })
    const [old, other] = [rig.pod('web-1'), rig.pod('web-2')]
    await rig.serve(old)
    const ports = Array.from({ length: 20 }, (_, i) => 8000 + i)
    await place(
      rig,
      ports.map(port => arrayOf([old, other]).map(node => ({ ...node, port })))
    )
    const { hook } = end(rig, old)
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
  })

  test('a place that its owner has emptied needs no other node', async start => {
    const rig = await start()
    const { hook, held } = await endLast(rig)
    expect(held()).to.deep.equal(['draining'])
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: {} })
    const { body } = await hook
    expect(body).to.include({ evidence: 'barrier' })
    expect(body.result).to.equal('drained')
  })

  test('a standby of weight 0 takes over from the last endpoint once it serves, and not before', async start => {
    const rig = await start()
    const [old, standby] = [rig.pod('web-1'), rig.pod('standby', { ready: false })]
    await rig.serve(old)
    await rig.serve(standby)
    const nodes = [
      { host: old.ip, port: old.port, weight: 1 },
      { host: standby.ip, port: standby.port, weight: 0 }
    ]
    rig.upstream('web', [old])
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes })
    await rig.settled('web', 2)
    const served = async () => (await get(`${rig.gateways[0]!.urls.proxy}/`)).body
    const { hook, why, held } = end(rig, old)
    await until('it is said', () => why().includes(`what is left does not serve: ${standby.node}`))
    expect(held()).to.deep.equal(['draining'])
    expect([await served(), await served()]).to.deep.equal(['web-1', 'web-1'])
    rig.isReady(standby, true)
    const { body } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect([await served(), await served()]).to.deep.equal(['standby', 'standby'])
  })

  test('a place that nothing refers to keeps no pod', async start => {
    const rig = await start()
    const { old, other } = await pair(rig)
    rig.upstream('unused', [old])
    await rig.settled('unused', 1)
    const { hook } = end(rig, old)
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect((await get(`${rig.gateways[0]!.urls.proxy}/`)).body).to.equal(other.name)
  })

  test('a fleet is upgraded to another wire version under load: a ghost stays carried, and hooks sleep as without the agent', async start => {
    const rig = await start({ gateways: 2, config: { APISIX_BARRIER_TTL: '10m' } })
    const owner = { kind: 'ReplicaSet', name: 'web-1a' }
    const pods = ['web-1', 'web-2', 'web-3', 'web-4'].map(name => rig.pod(name, { owner }))
    const [ghost, second, third, last] = pods
    const backends = await serving(rig, ...pods)
    rig.service('web', pods)
    const load = rig.load(100)
    const speak = (version: number) =>
      rig.gateways.forEach(({ barrier }) => barrier!.run(`require("apisix.drain.request").WIRE = ${version}`))
    const stops = async (i: number) => {
      await backends[i]!.terminate()
      await backends[i]!.close()
      rig.gone(pods[i]!)
      rig.service('web', pods.slice(i + 1))
    }
    const carried = () => rig.gateways.map(({ barrier }) => barrier!.entries.look(ghost!.ip, ghost!.port))

    expect((await rig.drain(ghost!)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await stops(0)
    // The owner never takes the node out.
    speak(2)
    const during = end(rig, second!)
    const { status, body } = await during.hook
    expect(status).to.equal(503)
    expect(body.why).to.contain('-> 409: agent and plugin have different wire versions (1 and 2)')
    rig.upstream('web', [ghost!, third!, last!])
    await rig.settled()
    await stops(1)
    expect(carried()).to.deep.equal(['sealed', 'sealed'])
    speak(1)
    await until('the agent has evidence again', () =>
      rig.gateways.every(({ barrier }) => barrier!.entries.all().length > 0)
    )
    expect((await rig.drain(third!)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await stops(2)
    expect(carried()).to.deep.equal(['sealed', 'sealed'])
    const { failures, sent } = await load.stop()
    expect(failures).to.deep.equal([])
    expect(sent).to.be.above(50)
  })
})
