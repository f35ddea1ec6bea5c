import { expect } from 'chai'
import * as fc from 'fast-check'
import { createBook, type Book, type Brief } from '../../../../agent/report/peers/book.ts'
import { aheadBy, createClocks, drainHere } from '../../../../agent/report/peers/clocks.ts'
import { readShare } from '../../../../agent/report/peers/share.ts'
import type { DrainView } from '../../../../agent/report/snapshot/drain-view.ts'
import { pod } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'
import { briefOf, drainOf, provedOf } from '../../../build/shared.ts'

/** Returns the times of a question to an agent whose clock is `ahead` ms ahead of the asker's. */
const answered = (ahead: number, there: number, back: number) => ({
  askedAt: 1000,
  at: 1000 + there + ahead,
  heardAt: 1000 + there + back
})

describe('the clock of another agent (D7)', () => {
  it('law: after each answer the offset is wrong by its round trip at most, and by half of it if it changed', () => {
    const trip = fc.tuple(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 0, max: 900 }))
    fc.assert(
      fc.property(fc.integer({ min: -5000, max: 5000 }), fc.array(trip, { minLength: 1 }), (ahead, trips) => {
        let known = 0
        for (const [there, back] of trips) {
          const before = known
          known = aheadBy(known, answered(ahead, there, back))
          const error = Math.abs(known - ahead)
          expect(error).to.be.at.most(there + back)
          if (known !== before) expect(error).to.be.at.most((there + back) / 2)
        }
      })
    )
  })

  it('stays while the answers allow it, and clocks that agree need no conversion', () => {
    expect(aheadBy(0, answered(0.4, 3, 5))).to.equal(0)
    expect(aheadBy(0, answered(3000, 3, 5))).to.equal(2999)
    expect(aheadBy(2999, answered(3000, 1, 1))).to.equal(2999)
    expect(aheadBy(2999, answered(2990, 1, 1)), 'the clock was set').to.equal(2990)
  })

  it('is learned from others for an agent that has ended, once, and measured if possible', () => {
    const clocks = createClocks()
    clocks.learn('b1', 100, { a1: 7 })
    clocks.learn('c1', 20, { a1: 500, b1: 500 })
    expect(clocks.all()).to.deep.equal({ a1: 107, b1: 100, c1: 20 })
    const { length } = Object.keys(clocks.all())
    const changes = clocks.changes()
    clocks.learn('c1', 20, { a1: 400 })
    expect([length, clocks.changes()]).to.deep.equal([3, changes])
    clocks.learn('a1', 9, {})
    expect(clocks.aheadOf('a1')).to.equal(9)
    expect(clocks.aheadOf('unknown')).to.equal(0)
    for (let i = 0; i < 1000; i++) clocks.learn(`start-${i}`, i, {})
    expect(Object.keys(clocks.all())).to.have.length(256)
  })

  it('moves every time of a drain but that of Kubernetes, and no other number', () => {
    const at = 1_000_000
    const full = drainOf('web-1', {
      witnesses: { deletion: at, hook: at, slice: at },
      deadline: at,
      moments: {
        decidedAt: at,
        seenAt: at,
        hookAt: at,
        sliceAt: at,
        acceptedAt: at,
        sealedAt: at,
        confirmedAt: at,
        idleAt: at,
        ackAt: at,
        goneAt: at
      },
      longLived: { upgraded: 1, sse: 2, streams: 3, oldestMs: 4 },
      gateways: [{ name: 'apisix-0', grade: 'barrier', at, sealedAt: at, idleAt: at, why: '' }],
      holders: [{ key: 'upstreams/web', state: 'removed', why: '', at }]
    })
    const numbers = (drain: DrainView) =>
      [...JSON.stringify(drain).matchAll(/"(\w+)":(\d+)/g)].map(([, name, value]) => [name, Number(value)])
    const moved = numbers(full).map(([name, value]) => [
      name,
      value === at && name !== 'decidedAt' ? at - 3000 : value
    ])
    expect(numbers(drainHere(full, 3000))).to.deep.equal(moved)
    expect(drainHere(full, 0)).to.equal(full)
  })
})

/** The agent of the book `to` asks the agent of `from`, whose clock is `ahead` ms ahead of the asker's. */
function tell(from: Book, its: Brief, to: Book, own: Brief, ahead: number) {
  const read = readShare(JSON.stringify(from.share(its, 0)))
  if (read.kind !== 'share') throw new Error(read.kind)
  to.hear(own, read.share, new Map(read.share.drains.map(drain => [drain.uid, drain])), ahead)
  return read.share
}

describe('agents whose clocks differ (D7)', () => {
  const AHEAD = 3000
  const at = 1_000_000
  const mine = provedOf('web-1', at)
  /** The same drain at the second agent, whose clock is ahead. That agent saw the drain 40 ms later, and answered its hook. */
  const seen = provedOf('web-1', at + AHEAD + 40)
  const theirs: DrainView = { ...seen, moments: { ...seen.moments, ackAt: at + AHEAD + 60 } }
  const ack = {
    at: at + AHEAD + 60,
    ack: ackFor(pod('web-1'), {
      gateways: [{ name: 'apisix-0', grade: 'barrier', at: at + AHEAD + 40, sealedAt: at + AHEAD, why: '' }]
    })
  }
  const lag = {
    at: at + AHEAD,
    ms: 5,
    grade: 'barrier' as const,
    uid: 'web-1',
    namespace: 'shop',
    owner: null
  }
  const first = briefOf('a1', { past: [mine] })
  const second = briefOf('b1', { past: [theirs], acks: [ack], lags: [lag] })

  it('each shows all times by its own clock, the earliest first', () => {
    const [a, b] = [createBook(), createBook()]
    tell(b, second, a, first, AHEAD)
    tell(a, first, b, second, -AHEAD)
    const [atFirst, atSecond] = [a.history(), b.history()]
    expect(atFirst.past[0]?.moments).to.include({ seenAt: at - 50, confirmedAt: at, ackAt: at + 60 })
    expect(atSecond.past[0]?.moments).to.include({
      seenAt: at - 50 + AHEAD,
      confirmedAt: at + AHEAD,
      ackAt: at + 60 + AHEAD
    })
    expect(atFirst.acks[0]?.at).to.equal(at + 60)
    expect(atFirst.acks[0]?.ack.gateways[0]).to.include({ at: at + 40, sealedAt: at })
    expect(atFirst.lags[0]).to.deep.equal({ ...lag, at })
    expect(atSecond.acks[0]).to.deep.equal(ack)
    expect(a.finished('web-1')).to.equal(atFirst.past[0])
  })

  it('nothing drifts as the records travel back and forth, whatever each question measures', () => {
    const [a, b] = [createBook(), createBook()]
    let share: ReturnType<typeof tell> | undefined
    for (let i = 0; i < 200; i++) {
      const error = (i % 7) - 5
      tell(b, second, a, first, AHEAD + error)
      share = tell(a, first, b, second, -AHEAD + error)
    }
    tell(b, second, a, first, AHEAD)
    expect(a.history().past[0]?.moments).to.include({ seenAt: at - 50, confirmedAt: at, ackAt: at + 60 })
    const told = Object.fromEntries(share!.past.map(({ by, ...drain }) => [by, drain.moments]))
    expect(told).to.deep.equal({ a1: mine.moments, b1: theirs.moments })
    expect(share!.acks.map(one => [one.by, one.at])).to.deep.equal([['b1', ack.at]])
  })

  it('lists stay the same objects while neither a record nor a clock changes', () => {
    const a = createBook()
    const b = createBook()
    tell(b, second, a, first, AHEAD)
    const before = a.history()
    tell(b, second, a, first, AHEAD)
    for (const list of ['past', 'unproved', 'acks', 'lags'] as const)
      expect(a.history()[list]).to.equal(before[list])
    tell(b, second, a, first, AHEAD - 1)
    expect(a.history().acks[0]?.at).to.equal(at + 61)
  })

  it('a restarted agent converts what its ended start had told, by the clocks that the others know', () => {
    const b = createBook()
    // The first agent's clock is behind the second agent's clock (by 3 s). After its restart it is ahead of it (by 2 s).
    tell(createBook(), first, b, second, -AHEAD)
    const again = createBook()
    tell(b, second, again, briefOf('a2', {}, 9), -2000)
    expect(again.history().past[0]?.moments).to.include({
      seenAt: at - 50 + AHEAD + 2000,
      ackAt: at + 60 + AHEAD + 2000
    })
  })
})
