import { expect } from 'chai'
import * as fc from 'fast-check'
import { createClockOffset } from '../../../../agent/kubernetes/transport/connection.ts'

const HOUR = 3_600_000
const START = 1_000_000_000_123

/** The network times of a request and its answer, and the pause before the request, in ms. */
interface Way {
  readonly gap: number
  readonly there: number
  readonly back: number
}

const way = fc.record({
  gap: fc.nat(5000),
  there: fc.oneof(fc.nat(20), fc.nat(5000)),
  back: fc.oneof(fc.nat(20), fc.nat(5000))
})

/** Plays the answers of a server whose clock is `behind` ours. */
function hear(
  offset: ReturnType<typeof createClockOffset>,
  behind: number,
  ways: readonly Way[],
  from = START
) {
  let now = from
  for (const { gap, there, back } of ways) {
    const askedAt = now + gap
    now = askedAt + there + back
    offset.note(new Date(askedAt + there - behind).toUTCString(), askedAt, now)
  }
  return now
}

const quick = (count: number): Way[] =>
  Array.from({ length: count }, () => ({ gap: 1300, there: 5, back: 5 }))

describe('clock offset', () => {
  it('is 0 before the first answer, and while the clocks may agree', () => {
    const offset = createClockOffset()
    expect(offset.behindMs()).to.equal(0)
    hear(offset, 0, quick(20))
    expect(offset.behindMs()).to.equal(0)
  })

  it('is never too large, however slow the network; it is too small by at most a second plus the fastest answer', () => {
    const behind = fc.oneof(fc.integer({ min: -3000, max: 3000 }), fc.integer({ min: -HOUR, max: HOUR }))
    fc.assert(
      fc.property(behind, fc.array(way, { minLength: 1, maxLength: 15 }), (behind, ways) => {
        const offset = createClockOffset()
        hear(offset, behind, ways)
        const found = offset.behindMs()
        const slack = 1000 + Math.min(...ways.slice(-10).map(({ there, back }) => there + back))
        // 0 also means that the server's clock is ahead or behind by too little to detect.
        if (found === 0) expect(Math.abs(behind)).to.be.at.most(slack)
        else expect(found).to.be.within(behind - slack, behind)
      })
    )
  })

  it('follows a clock that was set: at once if an answer shows it, otherwise after ten answers', () => {
    const step = fc.oneof(fc.integer({ min: -1020, max: 1020 }), fc.integer({ min: -HOUR, max: HOUR }))
    fc.assert(
      fc.property(fc.integer({ min: -HOUR, max: HOUR }), step, (before, step) => {
        const offset = createClockOffset()
        const now = hear(offset, before, quick(10))
        const behind = before + step
        // Before and after the step, the error of the offset is at most a second plus the network time.
        hear(offset, behind, quick(Math.abs(step) > 1020 ? 1 : 10), now)
        const found = offset.behindMs()
        if (found === 0) expect(Math.abs(behind)).to.be.at.most(1010)
        else expect(found).to.be.within(behind - 1010, behind)
      })
    )
  })

  it('ignores answers without a date', () => {
    const offset = createClockOffset()
    offset.note(undefined, 5_000_000, 5_000_000)
    offset.note('soon', 5_000_000, 5_000_000)
    expect(offset.behindMs()).to.equal(0)
  })
})
