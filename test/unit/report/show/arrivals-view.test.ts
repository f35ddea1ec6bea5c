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

  function rig(mode = 'etcd') {
    const clock = manualClock()
    const ready = new Map([[fresh.uid, clock.now()]])
    const pods = [old, { ...fresh, startedAt: clock.now() - 1000 }]
    let web: Holder = BEHIND
    let workers: { revision: number; applied: number }[] = [{ revision: 40, applied: 0 }]
    let lacked = true
    let looks = 0
    const arrivals = createArrivals({
      clock,
      metrics,
      lackedBy: () => new Map(lacked ? [['10.0.0.2', ['upstreams/web']]] : []),
      sources: {
        mode: { current: () => ({ mode }) },
        cluster: {
          gateways: () => [{ id: 'g', name: 'apisix-0', ready: true, terminating: false }],
          pods: {
            becameReady: () => ready,
            get: (uid: string) => pods.find(p => p.uid === uid)
          }
        },
        inventory: {
          byHost: (ip: string) => (web.nodes.some(({ host }) => host === ip) ? [web] : [])
        },
        barrier: {
          state: () => (
            (looks += 1),
            {
              problem: '',
              lastSuccessAt: clock.now(),
              lastAttemptAt: clock.now(),
              status: { now: (clock.now() + 500) / 1000, workers }
            }
          )
        },
        probe: undefined
      } as never
    })
    const round = (ms: number) => {
      clock.advance(ms)
      arrivals.observer.round()
    }
    return {
      arrivals,
      clock,
      round,
      ready,
      list: () => {
        web = LISTED
        lacked = false
      },
      forget: () => (lacked = false),
      lackedAgain: () => (lacked = true),
      apply: (at: number) => (workers = [{ revision: 41, applied: (at + 500) / 1000 }]),
      looks: () => looks
    }
  }

  it('follows a pod until the last worker of every gateway has applied the holder that lists it', async () => {
    const { arrivals, clock, round, list, apply } = rig()
    const readyAt = clock.now()
    round(200)
    expect(arrivals.views()[0]).to.include({ pod: 'fresh', routedAt: null })
    expect(arrivals.views()[0]?.why).to.equal('upstreams/web does not list it yet')
    list()
    round(200)
    expect(arrivals.views()[0]?.why).to.match(/a worker has applied revision 40/)
    const appliedAt = clock.now() + 50
    apply(appliedAt)
    round(200)
    const [arrived] = arrivals.views()
    expect(arrived?.routedAt).to.be.closeTo(appliedAt, 0.01)
    expect(arrived?.gateways).to.deep.equal([{ name: 'apisix-0', at: arrived?.routedAt }])
    expect(arrived?.why).to.equal('')
    const { values } = await metrics.syncLag.get()
    const sum = values.find(
      ({ metricName, labels }) => metricName?.endsWith('_sum') === true && labels.direction === 'arrival'
    )
    expect(sum?.value).to.be.closeTo((appliedAt - readyAt) / 1000, 0.001)
  })

  it('asks nothing about a pod that no holder lists or lacks, and shows none', () => {
    const { arrivals, round, looks, forget } = rig()
    forget()
    for (let i = 0; i < 20; i += 1) round(200)
    expect([looks(), arrivals.views().length]).to.deep.equal([0, 0])
  })

  it('keeps the time of a gateway that had it first, whatever that gateway applies later', () => {
    const { arrivals, round, list, apply, clock, lackedAgain } = rig()
    list()
    lackedAgain()
    const appliedAt = clock.now() + 50
    apply(appliedAt)
    round(200)
    expect(arrivals.views()[0]).to.include({ routedAt: null })
    apply(clock.now())
    list()
    round(200)
    expect(arrivals.views()[0]?.routedAt).to.be.closeTo(appliedAt, 0.01)
  })

  it('rests on no revision in standalone mode: there the agent counts them itself', () => {
    const { arrivals, round, list, apply, clock } = rig('standalone')
    round(200)
    list()
    apply(clock.now())
    round(200)
    expect(arrivals.views()[0]).to.include({
      routedAt: null,
      why: 'apisix-0: not seen to list it in upstreams/web yet'
    })
  })

  it('keeps a pod that did not arrive, and counts no lag for it', () => {
    const { arrivals, round, ready } = rig()
    for (let i = 0; i < 10; i++) round(1000)
    ready.clear()
    round(1000)
    expect(arrivals.views()).to.have.length(1)
    expect(arrivals.views()[0]?.routedAt).to.equal(null)
  })
})
