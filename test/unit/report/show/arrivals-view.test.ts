import { expect } from 'chai'
import { createArrivals } from '../../../../agent/report/show/arrivals-view.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { holder } from '../../../build/holder.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod } from '../../../build/pod.ts'

describe('arrivals', () => {
  const metrics = createMetrics()
  const old = pod('old', { ips: ['10.0.0.1'] })
  const fresh = pod('fresh', { ips: ['10.0.0.2'] })
  const BEHIND = holder('web', ['10.0.0.1:8080'], { revision: 40 })
  const LISTED = holder('web', ['10.0.0.1:8080', '10.0.0.2:8080'], { revision: 41 })

  function rig(services = [{ namespace: 'shop', name: 'web' }], mode = 'etcd') {
    const clock = manualClock()
    const ready = new Map([[fresh.uid, clock.now()]])
    const pods = [old, { ...fresh, startedAt: clock.now() - 1000 }]
    let web: Holder = BEHIND
    let workers: { revision: number; applied: number }[] = [{ revision: 40, applied: 0 }]
    let looks = 0
    const followed = new Set<string>()
    const arrivals = createArrivals({
      clock,
      metrics,
      isFollowed: ({ name }) => followed.has(name),
      sources: {
        mode: { current: () => ({ mode }) },
        cluster: {
          gateways: () => ((looks += 1), [{ id: 'g', name: 'apisix-0', ready: true, terminating: false }]),
          pods: {
            becameReady: () => ready,
            get: (uid: string) => pods.find(p => p.uid === uid),
            byIp: (ip: string) => pods.filter(p => p.ips.includes(ip))
          },
          slices: {
            servicesOf: () => services,
            serving: () => pods.map(p => ({ address: p.ips[0], podUid: p.uid, ready: true, serving: true }))
          }
        },
        inventory: {
          byHost: (ip: string) => (web.nodes.some(({ host }) => host === ip) ? [web] : []),
          listedSince: () => web.revision
        },
        barrier: {
          state: () => ({ problem: '', lastSuccessAt: clock.now(), aheadMs: 500, told: { workers } })
        },
        probe: undefined
      } as never
    })
    const round = (ms: number) => {
      clock.advance(ms)
      arrivals.observer.round?.(1)
    }
    return {
      arrivals,
      clock,
      round,
      ready,
      list: () => (web = LISTED),
      apply: (at: number) => (workers = [{ revision: 41, applied: (at + 500) / 1000 }]),
      looks: () => looks,
      services,
      followed
    }
  }

  it('follows a pod until the last worker of every gateway has applied the holder that lists it', async () => {
    const { arrivals, clock, round, list, apply } = rig()
    const readyAt = clock.now()
    round(200)
    expect(arrivals.views()[0]).to.include({ pod: 'fresh', routedAt: null })
    expect(arrivals.views()[0]?.why).to.equal('apisix-0: upstreams/web does not list it yet')
    list()
    round(200)
    expect(arrivals.views()[0]?.why).to.match(/a worker has applied revision 40/)
    const appliedAt = clock.now() + 50
    apply(appliedAt)
    round(200)
    const [arrived] = arrivals.views()
    expect(arrived?.routedAt).to.be.closeTo(appliedAt, 0.01)
    expect(arrived?.holders).to.have.length(1)
    expect(arrived?.why).to.equal('')
    const { values } = await metrics.syncLag.get()
    const sum = values.find(
      ({ metricName, labels }) => metricName?.endsWith('_sum') === true && labels.direction === 'arrival'
    )
    expect(sum?.value).to.be.closeTo((appliedAt - readyAt) / 1000, 0.001)
  })

  it('costs almost no work for a pod that APISIX does not route to', () => {
    const { round, looks } = rig([])
    for (let i = 0; i < 20; i += 1) round(200)
    expect(looks()).to.equal(1)
    for (let i = 0; i < 20; i += 1) round(200)
    expect(looks()).to.equal(2)
  })

  it('is looked at as soon as a holder lists it, or follows a Service that has it', () => {
    for (const how of ['lists', 'follows'] as const) {
      const { round, looks, services, followed, list } = rig([])
      round(200)
      expect(looks()).to.equal(1)
      round(200)
      expect(looks()).to.equal(1)
      if (how === 'lists') list()
      else {
        followed.add('web')
        services.push({ namespace: 'shop', name: 'web' })
      }
      round(200)
      expect(looks(), how).to.equal(2)
    }
  })

  it('rests on no revision in standalone mode: there the agent counts them itself', () => {
    const { arrivals, round, list, apply, clock } = rig(undefined, 'standalone')
    round(200)
    list()
    apply(clock.now())
    round(200)
    expect(arrivals.views()[0]).to.include({
      routedAt: null,
      why: 'apisix-0: not seen to list it in upstreams/web yet'
    })
  })

  it('keeps a pod that did not arrive within two minutes, and counts no lag for it', () => {
    const { arrivals, round } = rig()
    for (let i = 0; i < 130; i++) round(1000)
    expect(arrivals.views()).to.have.length(1)
    expect(arrivals.views()[0]?.routedAt).to.equal(null)
  })
})
