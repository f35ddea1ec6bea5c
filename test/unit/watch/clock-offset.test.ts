import { expect } from 'chai'
import { createClockOffset } from '../../../agent/watch/clock-offset.ts'

const HOUR = 3_600_000

/** Answers of a server whose clock is `behind` ours, one every 1.3 s, each 5 ms old when it arrives. */
function after(behind: number, answers = 20) {
  const offset = createClockOffset()
  for (let i = 0; i < answers; i += 1) {
    const now = 1_000_000_000_123 + i * 1300
    offset.note(new Date(now - behind - 5).toUTCString(), now)
  }
  return offset.behindMs()
}

describe('clock offset', () => {
  it('is nothing while the clocks agree as far as whole seconds show', () => {
    expect(createClockOffset().behindMs()).to.equal(0)
    expect(after(0)).to.equal(0)
    expect(after(900)).to.equal(0)
    expect(after(-900)).to.equal(0)
  })

  it('is found in both directions, never too large and at most a second too small', () => {
    for (const behind of [25_000, HOUR, -25_000, -HOUR]) {
      expect(after(behind)).to.be.within(behind - 1000, behind + 5)
    }
  })

  it('follows a clock that was set, after a few answers', () => {
    const offset = createClockOffset()
    const hear = (behind: number, from: number) => {
      for (let i = 0; i < 10; i += 1)
        offset.note(new Date(from + i * 1300 - behind).toUTCString(), from + i * 1300)
    }
    hear(25_000, 1_000_000_000_000)
    hear(0, 1_000_000_100_000)
    expect(offset.behindMs()).to.equal(0)
  })

  it('takes no notice of answers without a date', () => {
    const offset = createClockOffset()
    offset.note(undefined, 5_000_000)
    offset.note('soon', 5_000_000)
    expect(offset.behindMs()).to.equal(0)
  })
})
