import { expect } from 'chai'
import { watchAbsence } from '../../../agent/start/start-sources.ts'
import { manualClock } from '../../build/manual-clock.ts'

describe('absence of the process', () => {
  /** Makes a clock that can jump. Due alarms then fire late, as after SIGCONT. */
  const setup = () => {
    const clock = manualClock()
    const jump = { ms: 0 }
    const now = () => clock.now() + jump.ms
    let resumes = 0
    const absence = watchAbsence(
      { ...clock, now, alarm: (at, wake) => clock.alarm(at - jump.ms, wake) },
      () => (resumes += 1)
    )
    return { clock, jump, now, absence, resumes: () => resumes }
  }

  it('is not reported while the timer ticks, however long', () => {
    const { clock, absence, resumes } = setup()
    clock.advance(600_000)
    expect([absence.resumedAt(), resumes()]).to.deep.equal([-Infinity, 0])
    absence.stop()
    expect(clock.pending).to.equal(0)
  })

  it('is not reported if a turn of the event loop takes a second', () => {
    const { clock, jump, absence, resumes } = setup()
    jump.ms += 1000
    clock.advance(250)
    expect([absence.resumedAt(), resumes()]).to.deep.equal([-Infinity, 0])
    absence.stop()
  })

  it('is detected by the first caller, before any timer fires, and reported once', () => {
    const { clock, jump, now, absence, resumes } = setup()
    clock.advance(1000)
    jump.ms += 30_000
    const back = now()
    expect([absence.resumedAt(), resumes()]).to.deep.equal([back, 1])
    clock.advance(10_000)
    expect([absence.resumedAt(), resumes()]).to.deep.equal([back, 1])
    absence.stop()
  })

  it('is detected by the timer if no caller asks, every time', () => {
    const { clock, jump, absence, resumes } = setup()
    for (const times of [1, 2]) {
      jump.ms += 2000
      clock.advance(250)
      expect(resumes()).to.equal(times)
    }
    absence.stop()
  })
})
