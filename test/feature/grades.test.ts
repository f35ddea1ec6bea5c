import { expect } from 'chai'
import type { Millis, PodUid } from '../../agent/rules/drain/facts.ts'
import { SEAL_BEFORE_MS } from '../../agent/round/entries/seal-decision.ts'
import { until } from '../build/apisix.ts'
import { get } from '../build/load.ts'
import { pair, serving } from '../build/pair.ts'
import { SHORT } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { slowClock } from '../build/slow-clock.ts'

describe('feature: the proof of a drain', () => {
  const test = sideBySide()

  test('observed: the node leaves the upstream, every gateway is seen without it, then the hook is answered', async start => {
    const rig = await start({ gateways: 2 })
    const [old, fresh] = await pair(rig)
    const { status, body, ranMs } = await rig.drain(old)
    expect(status).to.equal(200)
    expect(body).to.include({ result: 'drained', evidence: 'observed' })
    expect(body.pod).to.deep.equal({ namespace: 'shop', name: 'web-1', uid: old.uid })
    expect(body.gateways?.map(({ grade }) => grade)).to.deep.equal(['observed', 'observed'])
    expect(body.holders).to.deep.equal([{ key: 'upstreams/web', state: 'removed', why: '' }])
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    expect(rig.writes).to.deep.equal(['PATCH /apisix/admin/upstreams/web'])
    expect(ranMs).to.be.below(3000)
  })

  test('the hook’s own sleep from the removal passes too, and `drain.settle` at least', async start => {
    const rig = await start({ config: { DRAIN_SETTLE: '600ms' } })
    const [old, other] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.upstream('web', [old, other, rig.pod('web-3')])
    await rig.settled()
    for (const [pod, query, least] of [
      [old, '', 600],
      [other, 'sleep=1200ms', 1200]
    ] as const) {
      const { body, ms, ranMs } = await rig.drain(pod, query)
      expect(body).to.include({ result: 'drained', evidence: 'observed' })
      expect([ms > least - 1, ranMs < least + 1500], `${ms} ms`).to.deep.equal([true, true])
    }
  })

  test('nothing shows what gateways do: the Control API is off, so the 503 comes at once', async start => {
    const rig = await start({ config: { APISIX_CONTROL_ENABLED: 'false' } })
    const [old, fresh] = await pair(rig)
    const { status, body, ranMs } = await rig.drain(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved', evidence: 'none' })
    expect(body.change).to.contain('load the plugin')
    expect(ranMs).to.be.below(1000)
    await until('the node is out all the same', () => rig.nodes('upstreams/web').join() === fresh.node)
  })

  test('neither Admin API nor Control API can be reached: the 503 comes after two seconds', async start => {
    const rig = await start({ config: SHORT })
    const [old] = await pair(rig)
    await rig.admin.listener.reach('refused')
    await rig.gateways[0]!.partition({ control: 'refused' })
    const { status, body, ms, ranMs } = await rig.drain(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved', evidence: 'none' })
    expect(body.why).to.contain('nothing can be proved')
    expect(ms).to.be.at.least(1900)
    expect(ranMs).to.be.below(4000)
  })

  test('a pod that no list has: there is nothing to write, and the answer counts 0 places', async start => {
    const rig = await start()
    const [lone, other] = [rig.pod('job-1'), rig.pod('web-1')]
    rig.upstream('web', [other])
    await rig.settled()
    const { body } = await rig.drain(lone)
    expect(body).to.include({ result: 'drained', places: 0, evidence: 'observed' })
    expect(rig.writes).to.deep.equal([])
  })
})

describe('feature: the barrier', () => {
  const test = sideBySide({ barrier: true, gateways: 2 })

  test('drained: sealed on every gateway with nothing in flight; later requests go elsewhere', async start => {
    const rig = await start()
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    await serving(rig, old, fresh)
    const { body, ranMs } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(ranMs).to.be.below(3000)
    for (const { barrier } of rig.gateways) expect(barrier?.entries.look(old.ip, old.port)).to.equal('sealed')
    for (const { urls } of rig.gateways)
      for (let i = 0; i < 6; i++)
        expect(await get(`${urls.proxy}/`)).to.deep.equal({ status: 200, body: 'web-2' })
    await until('the node is out', () => rig.nodes('upstreams/web').length === 1)
  })

  test('waits for a slow request in flight, and no longer', async start => {
    const rig = await start()
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    const [backend, other] = await serving(rig, old, fresh)
    const slow = [1, 2, 3, 4].map(() => get(`${rig.gateways[0]!.urls.proxy}/?hold`))
    await until('a slow request is at the pod', () => backend.open > 0 && backend.open + other.open === 4)
    let answered = false
    const hook = rig.drain(old).finally(() => (answered = true))
    await rig.entryIs('sealed', old)
    const [drain] = rig.agent.loop.drains().values()
    expect(drain?.phase).to.equal('draining')
    expect(answered).to.equal(false)
    backend.release()
    const { body } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    other.release()
    for (const one of slow) expect((await one).status).to.equal(200)
  })

  test('a worker that never gets another node: the deadline forces the seal, and the answer states that', async start => {
    let sealing: Millis | undefined
    let isSealed = () => false
    const rig = await start({
      gateways: 1,
      agent: false,
      config: { DRAIN_RESERVE: '22s' },
      // The agent seals 250 ms before the deadline.
      clock: () =>
        slowClock(
          () => sealing,
          () => isSealed()
        )
    })
    const [gateway] = rig.gateways
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 25 }), rig.pod('web-2')]
    await rig.serve(old)
    rig.upstream('web', [old])
    await rig.settled()
    for (const worker of gateway!.workers) worker.loseWatch()
    rig.upstream('web', [fresh])
    await rig.readyAgent()
    rig.end(old)
    const answered = new AbortController()
    const hook = rig.hook(old).finally(() => answered.abort())
    const drain = () => rig.agent.loop.drains().get(old.uid as PodUid)
    await until('its drain has begun', () => drain() !== undefined)
    sealing = drain()!.deadline - SEAL_BEFORE_MS
    isSealed = () => drain()?.phase === 'proven'
    // These requests reach the pod because there is no other node. They delay the seal.
    while (!answered.signal.aborted) await get(`${gateway!.urls.proxy}/`)
    const { status, body } = await hook
    expect({ status, ...body }).to.include({ status: 200, evidence: 'barrier' })
    expect(body.why).to.contain('no other pod could take over in time')
    expect(await get(`${gateway!.urls.proxy}/`)).to.include({ status: 503 })
  })

  test('the only node that a worker knows: it serves there as long as it is picked, however long requests are in flight', async start => {
    const rig = await start({ gateways: 1, agent: false })
    const [gateway] = rig.gateways
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    const backend = await rig.serve(old)
    await rig.serve(fresh)
    rig.upstream('web', [old])
    await rig.settled()
    const slow = get(`${gateway!.urls.proxy}/?hold`)
    await until('a slow request is at the pod', () => backend.open > 0)
    for (const worker of gateway!.workers) worker.loseWatch()
    rig.upstream('web', [fresh])
    await rig.readyAgent()
    const hook = rig.drain(old)
    // A put waits for words for a few ms only.
    for (const until = performance.now() + 1500; performance.now() < until;)
      expect(await get(`${gateway!.urls.proxy}/`)).to.deep.equal({ status: 200, body: 'web-1' })
    for (const worker of gateway!.workers) worker.restoreWatch()
    await rig.entryIs('sealed', old)
    backend.release()
    expect((await hook).body).to.include({ evidence: 'barrier' })
    expect((await slow).status).to.equal(200)
  })

  test('websockets do not hold the hook, and the answer counts those that are left (P20)', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    const [first] = rig.gateways
    for (let n = 0; n < 2; n += 1) first!.barrier?.inflight.up(old.ip, old.port, 'long')
    const { status, body } = await rig.drain(old)
    expect({ status, ...body }).to.deep.include({
      status: 200,
      result: 'drained',
      evidence: 'barrier',
      longLived: { upgraded: 2, sse: 0, streams: 0, oldestMs: 0 }
    })
    expect(body.why).to.include('left for the pod to end at SIGTERM: 2 websockets')
  })

  test('a pod that asks to wait for its websockets is answered when the last one closes', async start => {
    const rig = await start()
    const annotations = { 'apisix-drain.io/long-lived-wait': '1h' }
    const [old] = await pair(rig, { annotations })
    const [first] = rig.gateways
    first!.barrier?.inflight.up(old.ip, old.port, 'long')
    const hook = rig.drain(old)
    await rig.entryIs('sealed', old)
    let isAnswered = false
    void hook.then(() => (isAnswered = true))
    await until('the agent has read the seal', () => {
      const drain = rig.agent.loop.drains().get(old.uid as never)
      return drain?.phase === 'draining' && drain.verdict.kind === 'waiting' && drain.verdict.barred
    })
    expect(isAnswered).to.equal(false)
    first!.barrier?.inflight.down(old.ip, old.port, 'long')
    expect((await hook).body).to.deep.include({ result: 'drained', evidence: 'barrier', longLived: null })
  })
})
