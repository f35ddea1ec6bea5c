import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { serving } from '../build/pair.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: one replica under load', () => {
  const test = sideBySide({ gateways: 2, barrier: true })

  const underLoad = async (rig: Rig) => {
    const old = rig.pod('web-1', { graceSeconds: 300 })
    const [backend] = await serving(rig, old)
    const load = rig.load(50)
    await until('requests are answered', () => (load.result.by['web-1'] ?? 0) > 10)
    return { old, backend, load }
  }

  test('a rolling update whose gateways learn of the new pod late loses nothing: the old pod serves until then', async start => {
    const rig = await start()
    const { old, backend: before, load } = await underLoad(rig)
    const fresh = rig.pod('web-2')
    const after = await rig.serve(fresh)
    const workers = rig.gateways.flatMap(gateway => gateway.workers)
    for (const worker of workers) worker.loseWatch()
    rig.upstream('web', [old, fresh])
    let answered = false
    const hook = rig.drain(old).finally(() => (answered = true))
    const entries = rig.gateways.map(({ barrier }) => barrier?.entries)
    await until('every gateway has the entry', () =>
      entries.every(one => one?.look(old.ip, old.port) === 'draining')
    )
    const servedThen = load.result.by['web-1'] ?? 0
    await until('it serves while the new pod cannot', () => load.result.by['web-1']! > servedThen + 100)
    expect([answered, after.arrivals.length]).to.deep.equal([false, 0])
    for (const worker of workers) worker.restoreWatch()
    const { body } = await hook
    await before.terminate()
    expect(body.result).to.equal('drained')
    expect(body.evidence).to.equal('barrier')
    const answeredThen = after.arrivals.length
    await until('the new pod serves', () => after.arrivals.length > answeredThen + 20)
    await until('the node is out', () => rig.nodes('upstreams/web').length === 1)
    const { failures, by } = await load.stop()
    expect(failures).to.deep.equal([])
    expect(by['web-2']).to.be.above(20)
  })
})

describe('feature: many drains at once', () => {
  const test = sideBySide()

  test('20 drains with the Admin API down, one gateway restarted, one added: nothing reaches a drained node', async start => {
    const rig = await start({
      gateways: 2,
      barrier: true,
      config: { APISIX_ADMIN_TIMEOUT: '400ms' }
    })
    const old = Array.from({ length: 20 }, (_, i) => rig.pod(`web-1-${i}`, { graceSeconds: 20 }))
    const fresh = [0, 1].map(i => rig.pod(`web-2-${i}`))
    await serving(rig, ...old, ...fresh)
    await rig.admin.listener.reach('refused')
    const load = rig.load(100)
    await until('requests are answered', () => load.result.sent > 20)

    const hooks = old.map(pod => {
      return rig.drain(pod)
    })
    const joined = await rig.addGateway()
    const [, second] = rig.gateways
    await second!.stop()
    rig.gatewayIs(second!, 'not-ready')
    await second!.start()
    rig.gatewayIs(second!, 'ready')
    const replies = await Promise.all(hooks)
    for (const { body } of replies) expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    for (const gateway of [...rig.gateways.slice(0, 2), joined])
      for (const pod of old) expect(gateway.barrier?.entries.look(pod.ip, pod.port)).to.equal('sealed')
    const more = load.result.sent + 50
    await until('more requests came', () => load.result.sent > more)
    await load.stop()
    // The Admin API was unreachable, so all nodes are still listed. The rig checks that no request reached a drained pod.
    expect(rig.nodes('upstreams/web')).to.have.length(22)
    await rig.admin.listener.reach('open')
    await until('all are out', () => rig.nodes('upstreams/web').length === 2)
  })
})

describe('feature: 200 pods of one upstream', () => {
  // The tests run one after another, because they print their times.
  const test = sideBySide({ gateways: 2 }, 1)

  for (const spreadMs of [0, 900])
    test(`ending within ${spreadMs} ms: at least ten pods per write, every hook in time, never empty`, async start => {
      const rig = await start()
      const old = Array.from({ length: 200 }, (_, i) => rig.pod(`web-1-${i}`, { graceSeconds: 30 }))
      const fresh = rig.pod('web-2')
      rig.upstream('web', [...old, fresh])
      await rig.settled('web', 201)
      const replies = await Promise.all(
        old.map(async (pod, i) => {
          if (spreadMs > 0) await wait((i / old.length) * spreadMs)
          return rig.drain(pod)
        })
      )
      for (const { status, body } of replies) {
        expect(status).to.equal(200)
        expect(body).to.include({ result: 'drained', evidence: 'observed' })
      }
      expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
      const times = replies.map(({ ms }) => ms).toSorted((a, b) => a - b)
      const at = (share: number) => Math.round(times[Math.ceil(share * times.length) - 1] ?? 0)
      console.log(
        `      200 pods within ${spreadMs} ms: ${rig.writes.length} writes, hooks p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)} ms`
      )
      expect(rig.writes.length).to.be.within(1, old.length / 10)
    })
})
