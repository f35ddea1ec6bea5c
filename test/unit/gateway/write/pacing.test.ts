import { expect } from 'chai'
import { array, assert, integer, property } from 'fast-check'

import { nextWriteAt, type Written } from '../../../../agent/gateway/write/object-queue.ts'

describe('pacing', () => {
  it('writes a single removal at once', () => {
    expect(nextWriteAt([], 5000)).to.equal(5000)
    expect(nextWriteAt([{ at: 4900, nodes: 1 }], 5000)).to.equal(5000)
  })

  it('gathers longer if more nodes have just left', () => {
    expect(nextWriteAt([{ at: 5000, nodes: 1 }], 5000)).to.equal(5040)
    expect(nextWriteAt([{ at: 5000, nodes: 3 }], 5000)).to.equal(5360)
    expect(nextWriteAt([{ at: 5000, nodes: 100 }], 5000)).to.equal(6000)
  })

  it('makes at most 3 writes of 200 nodes, however they are spread over one second', () => {
    assert(
      property(array(integer({ min: 0, max: 999 }), { minLength: 200, maxLength: 200 }), times => {
        expect(writesFor(times.sort((a, b) => a - b))).to.be.at.most(3)
      })
    )
  })
})

/** Plays nodes that end at these times, with writes of 4 ms each. Returns the number of writes. */
function writesFor(times: readonly number[]): number {
  const written: Written[] = []
  let done = 0
  let now = times[0] ?? 0
  while (done < times.length) {
    now = Math.max(now, times[done] ?? 0)
    const at = nextWriteAt(written, now)
    if (at > now) {
      now = at
      continue
    }
    const upTo = times.filter(t => t <= now).length
    now += 4
    written.push({ at: now, nodes: upTo - done })
    done = upTo
  }
  return written.length
}
