import { expect } from 'chai'
import { createSchedule } from '../../../agent/round/schedule.ts'
import { silent } from '../../build/apisix.ts'
import { manualClock } from '../../build/manual-clock.ts'

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

  it('a round runs at its set time, or sooner if requested', async () => {
    const { clock, schedule, at, settled } = rig()
    schedule.set(100)
    schedule.noLaterThan(200)
    schedule.noLaterThan(50)
    clock.advance(50)
    await settled()
    expect(at).eql([50])
  })

  it('no round runs after the end', async () => {
    const { clock, schedule, at, settled } = rig()
    schedule.set(100)
    schedule.wake()
    schedule.stop()
    clock.advance(1000)
    schedule.wake()
    await settled()
    expect(at).eql([])
    expect(clock.pending).equal(0)
  })
})
