import { expect } from 'chai'
import { createSchedule } from '../../../agent/round/schedule.ts'
import { silent } from '../../build/apisix.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { momentsOf } from '../../../agent/report/snapshot/drain-view.ts'
import { createStatuses } from '../../../agent/round/gather/drain-status.ts'
import { begin, step } from '../../../agent/rules/drain/step.ts'
import { IDLE, DRAIN_SETTINGS, drainOf, proven, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'

describe('when rounds run', () => {
  const rig = (round: (clock: ReturnType<typeof manualClock>) => void = () => {}) => {
    const clock = manualClock(0)
    const at: number[] = []
    const took: number[] = []
    const schedule = createSchedule({
      clock,
      log: silent,
      round(now) {
        at.push(now)
        round(clock)
      },
      ended: tookMs => took.push(tookMs)
    })
    /** Resolves when the requested round has run. */
    const settled = () => new Promise<void>(resolve => setImmediate(resolve))
    return { clock, schedule, at, took, settled }
  }

  it('one round follows, however often it is requested', async () => {
    const { schedule, at, took, settled } = rig()
    schedule.wake()
    schedule.wake()
    await settled()
    expect([at, took]).eql([[0], [0]])
    schedule.wake()
    await settled()
    expect(at).eql([0, 0])
  })

  it('a pause follows a long round', async () => {
    const { clock, schedule, at, settled } = rig(time => time.advance(20))
    schedule.wake()
    await settled()
    schedule.wake()
    clock.advance(49)
    await settled()
    expect(at).eql([0])
    clock.advance(1)
    await settled()
    expect(at).eql([0, 70])
  })

  it('after a failed round nothing is decided until a round succeeds', async () => {
    let fails = true
    const { clock, schedule, at, took, settled } = rig(() => {
      if (fails) throw new Error('a defect')
    })
    schedule.wake()
    await settled()
    expect(schedule.isFailing()).equal(true)
    fails = false
    clock.advance(999)
    await settled()
    expect(at).eql([0])
    clock.advance(1)
    await settled()
    expect(at).eql([0, 1000])
    expect(schedule.isFailing()).equal(false)
    expect(took).eql([0])
  })

  it('a round runs at its set time', async () => {
    const { clock, schedule, at, settled } = rig()
    schedule.set(100)
    schedule.set(50)
    clock.advance(50)
    await settled()
    clock.advance(50)
    await settled()
    expect(at).eql([50])
  })

  it('no round runs after the end', async () => {
    const { clock, schedule, at, settled } = rig()
    schedule.set(100)
    schedule.wake()
    schedule.stop()
    schedule.set(200)
    clock.advance(1000)
    schedule.wake()
    schedule.set(50)
    await settled()
    expect(at).eql([])
    expect(clock.pending).equal(0)
  })
})

describe('moments', () => {
  const ending = pod('web-1', terminating(10_000, 30))
  const place = (key: string, removedAt: number | undefined) =>
    [key, { holder: holder(key, []), node: '10.0.0.1:80', removedAt }] as const

  it('records when Kubernetes decided, and not when the kubelet removes the pod from the API server', () => {
    const begun = drainOf(seen(ending), 10_003)
    expect(begun.decidedAt).to.equal(10_000)
    const last = seen(pod('web-1', terminating(17_000, 0)))
    expect(step(begun, last, 17_100, DRAIN_SETTINGS)).to.include({ decidedAt: 10_000, pod: last.pod })
  })

  it('counts as accepted when the last holder has dropped the node', () => {
    const status = createStatuses().of(ending.uid)
    const accepted = () => momentsOf(begin(seen(ending), 10_001, DRAIN_SETTINGS)!, status).acceptedAt
    expect(accepted()).to.equal(null)
    status.places.set(...place('a', 5))
    status.places.set(...place('b', 9))
    expect(accepted()).to.equal(9)
    status.places.set(...place('c', undefined))
    expect(accepted()).to.equal(null)
  })

  it('gives the time line of a drain', () => {
    const status = createStatuses().of(ending.uid)
    status.hookAt = 10_050
    status.ackAt = 10_080
    const begun = begin(seen(ending), 10_001, DRAIN_SETTINGS)!
    expect(momentsOf(begun, status)).to.include({
      decidedAt: 10_000,
      seenAt: 10_001,
      confirmedAt: null,
      goneAt: null
    })
    const verdict = proven({ at: 10_070, gateways: [{ ...IDLE, at: 10_070 }] })
    const done = { ...begun, phase: 'proven', at: 10_070, verdict } as never
    expect(momentsOf(done, status)).to.include({
      confirmedAt: 10_070,
      idleAt: 10_070,
      hookAt: 10_050,
      ackAt: 10_080
    })
    const weak = { ...begun, phase: 'gone', at: 10_090, verdict: proven({ grade: 'observed' }) } as never
    expect(momentsOf(weak, status)).to.include({ idleAt: null, goneAt: 10_090 })
  })
})

describe('statuses', () => {
  it('are kept for drains and held hooks, and for nothing else', () => {
    const statuses = createStatuses()
    const [a, b, c] = ['a', 'b', 'c'].map(name => pod(name).uid) as [never, never, never]
    for (const uid of [a, b, c]) statuses.of(uid).hookAt = 1
    statuses.keep(new Map([[a, {} as never]]), new Set([b]))
    expect([a, b, c].map(uid => statuses.of(uid).hookAt)).to.deep.equal([1, 1, undefined])
  })
})
