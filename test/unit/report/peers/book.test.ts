import { expect } from 'chai'
import { createBook, type Book, type Brief } from '../../../../agent/report/peers/book.ts'
import { readShare } from '../../../../agent/report/peers/share.ts'
import { createUnion } from '../../../../agent/report/peers/union.ts'
import type { Snapshot } from '../../../../agent/report/snapshot/snapshot.ts'
import type { AckView, DrainView } from '../../../../agent/report/snapshot/drain-view.ts'
import { LIMITS } from '../../../../agent/report/show/history.ts'
import { pod } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'
import { briefOf, drainOf, provedOf } from '../../../build/shared.ts'

const totals = (drains: number, hooks = 0): Snapshot['totals'] => ({
  drains,
  proven: drains,
  graded: { barrier: drains, observed: 0, accepted: 0, timer: 0 },
  expired: 0,
  undone: 0,
  hooks,
  rounds: 1,
  savedMs: hooks * 1000
})
const ackOf = (uid: string, at: number): AckView => ({
  at,
  ack: ackFor(pod('web-1'), { pod: { namespace: 'shop', name: 'web-1', uid } })
})
const named = (drains: readonly DrainView[]) => new Map(drains.map(drain => [drain.uid, drain]))

/** Sends the share of one book to another book, as text. Returns the share. */
function tell(from: Book, own: Brief, to: Book, its: Brief, after = 0, ahead = 0): ReturnType<Book['share']> {
  const read = readShare(JSON.stringify(from.share(own, after)))
  if (read.kind !== 'share') throw new Error(read.kind)
  to.hear(its, read.share, named(read.share.drains), ahead)
  return read.share
}

describe('the book of all agents (D7)', () => {
  it('gives a restarted agent the history of all agents, including that of its own earlier start', () => {
    const first = createBook()
    const second = createBook()
    const drains = [provedOf('web-1', 2000), provedOf('web-0', 1000)]
    const ended = briefOf('a1', { past: drains, acks: [ackOf('web-1', 2001)], totals: totals(2, 1) })
    const lives = briefOf('b1', { past: drains, acks: [ackOf('web-0', 1001)], totals: totals(2, 1) })
    tell(first, ended, second, lives)
    // The first agent restarts without any history.
    const again = createBook()
    tell(second, lives, again, briefOf('a2', {}, 9))
    const { past, acks } = again.history()
    expect(past.map(({ uid }) => uid)).to.deep.equal(['web-1', 'web-0'])
    expect(acks.map(({ at }) => at)).to.deep.equal([2001, 1001])
    expect(again.totals()).to.deep.include({ drains: 2, proven: 2, hooks: 2, savedMs: 2000 })
  })

  it('keeps the answer that an agent gave right before it ended, although it never reported the end of that drain', () => {
    const book = createBook()
    const mine = provedOf('web-1', 2000)
    const finished = { ...mine, moments: { ...mine.moments, ackAt: null } }
    const live = {
      ...mine,
      phase: 'proven' as const,
      hooks: 1,
      moments: { ...mine.moments, ackAt: 1900, goneAt: null }
    }
    book.complete('b1', named([live]))
    expect(book.history().past).to.deep.equal([])
    book.note(briefOf('a1', { past: [finished] }))
    book.complete('b1', named([live]))
    const [joined] = book.history().past
    expect(joined).to.include({ phase: 'gone', hooks: 0 })
    expect(joined?.moments).to.deep.include({ ackAt: 1900, goneAt: finished.moments.goneAt })
  })

  it('counts each drain once, whichever agents saw it, and each hook of each agent', () => {
    const [a, b] = [createBook(), createBook()]
    const old = provedOf('old', 1000)
    const now = provedOf('now', 2000)
    const next = provedOf('next', 3000)
    let elder = briefOf('b1', { past: [old], totals: totals(100, 40) })
    b.note(elder)
    // Both see the next drain before their first exchange.
    elder = briefOf('b1', { past: [now, old], totals: totals(101, 41) })
    let young = briefOf('a2', { past: [now], totals: totals(1, 0) }, 9)
    tell(b, elder, a, young)
    tell(a, young, b, elder)
    for (const book of [a, b]) expect(book.totals()).to.deep.include({ drains: 101, hooks: 41 })
    // The next drain is one that the older agent reports first.
    elder = briefOf('b1', { past: [next, now, old], totals: totals(102, 41) })
    tell(b, elder, a, young)
    expect(a.totals().drains).to.equal(102)
    young = briefOf('a2', { past: [next, now], totals: totals(2, 1) }, 9)
    for (let i = 0; i < 5; i++) {
      tell(a, young, b, elder)
      tell(b, elder, a, young)
    }
    for (const book of [a, b]) {
      expect(book.totals()).to.deep.include({ drains: 102, proven: 102, hooks: 42 })
      expect(book.totals().graded.barrier).to.equal(102)
    }
    // The older agent ends. The counts stay and continue.
    a.note(briefOf('a2', { past: [provedOf('last', 4000), next, now], totals: totals(3, 1) }, 9))
    expect(a.totals()).to.deep.include({ drains: 103, hooks: 42 })
  })

  it('counts a drain under way once, if one agent has proved it and the other has not yet', () => {
    const [a, b] = [createBook(), createBook()]
    const waiting = drainOf('web-1')
    const proved = drainOf('web-1', {
      phase: 'proven',
      verdict: { kind: 'proven', grade: 'barrier', result: 'drained', lastEndpoint: false }
    })
    const elder = briefOf('b1', { drains: [proved], totals: totals(10) })
    const counted = { ...totals(1), proven: 0, graded: totals(0).graded }
    tell(b, elder, a, briefOf('a2', { drains: [waiting], totals: counted }, 9))
    expect(a.totals()).to.deep.include({ drains: 10, proven: 10 })
    a.note(briefOf('a2', { drains: [proved], totals: totals(1) }, 9))
    expect(a.totals()).to.deep.include({ drains: 10, proven: 10 })
  })

  it('shares only changes since the last request of the other agent', () => {
    const book = createBook()
    const [one, two] = [drainOf('web-1'), drainOf('web-2')]
    const before = briefOf('a', { drains: [one, two], past: [provedOf('web-0', 1000)] })
    const { seq, live, drains, past } = book.share(before, 0)
    expect([live, drains.length, past.length]).to.deep.equal([['web-1', 'web-2'], 2, 1])
    expect(book.share(structuredClone(before), seq)).to.deep.include({ drains: [], past: [], seq })
    const changed = { ...two, hooks: 7 }
    const after = book.share({ ...before, drains: [changed] }, seq)
    expect(after).to.deep.include({ live: ['web-2'], drains: [changed], past: [] })
  })

  it('is bounded, and keeps a drain that was not proved for longer', () => {
    const book = createBook()
    const failed = drainOf('failed', { phase: 'gone', moments: { goneAt: 1 } })
    for (let i = 0; i < 3 * LIMITS.past; i++) {
      const past = [provedOf(`web-${i}`, 1000 + i), ...(i === 0 ? [failed] : [])]
      book.note(
        briefOf('a', { past, acks: [ackOf(`web-${i}`, 1000 + i)], unproved: i === 0 ? [failed] : [] })
      )
    }
    const { past, unproved, acks } = book.history()
    expect([past.length, unproved.length, acks.length]).to.deep.equal([LIMITS.past, 1, LIMITS.acks])
    expect(past[0]?.uid).to.equal(`web-${3 * LIMITS.past - 1}`)
    expect(book.history().past).to.equal(past)
    const told = book.share(briefOf('a'), 0)
    expect(told.past.length).to.be.at.most((LIMITS.past + LIMITS.unproved) * 1.25)
  })
})

describe('the answer of another agent', () => {
  const share = JSON.parse(
    JSON.stringify(createBook().share(briefOf('a', { drains: [drainOf('web-1')] }), 0))
  ) as {
    readonly drains: readonly object[]
  }
  it('is read if its version is the same', () => {
    expect(readShare(JSON.stringify(share))).to.deep.equal({ kind: 'share', share })
  })
  it('of another version is named, and not read', () => {
    expect(readShare(JSON.stringify({ version: 99 }))).to.deep.equal({ kind: 'other', version: 99 })
  })
  it('that is damaged does not reach the page', () => {
    const [drain] = share.drains
    const damaged = [
      '',
      '<html>',
      '[]',
      JSON.stringify({ ...share, drains: [{ ...drain, moments: null }] }),
      JSON.stringify({ ...share, drains: [{ ...drain, phase: 'ended' }] }),
      JSON.stringify({ ...share, live: [1] }),
      JSON.stringify({ ...share, agent: {} })
    ]
    for (const text of damaged) expect(readShare(text), text.slice(0, 80)).to.deep.equal({ kind: 'garbled' })
  })
})

describe('drains under way at several agents', () => {
  const none = () => undefined
  const told = (name: string, live: boolean, ...drains: DrainView[]) => ({
    name,
    live,
    drains: named(drains),
    ahead: 0
  })

  it('adds the hooks of agents that answer, and keeps an unchanged drain the same object', () => {
    const union = createUnion()
    const options = {
      own: named([drainOf('web-1', { hooks: 1 })]),
      others: [
        told('b', true, drainOf('web-1', { hooks: 2 })),
        told('c', false, drainOf('web-1', { hooks: 4 }))
      ],
      finished: none,
      now: 0
    }
    const [drain] = union(options)
    expect(drain?.hooks).to.equal(3)
    expect(drain).not.to.have.property('onlyFrom')
    expect(union(options)[0]).to.equal(drain)
    expect(union({ ...options, others: [] })[0]?.hooks).to.equal(1)
  })

  it('shows a drain that only another agent knows, names that agent, and forgets it after its deadline if that agent is lost', () => {
    const union = createUnion()
    const seen = (live: boolean, now: number, finished: (uid: string) => DrainView | undefined = none) =>
      union({
        own: new Map(),
        others: [told('b', live, drainOf('web-1', { deadline: 1000 }))],
        finished,
        now
      })
    expect(seen(true, 0)[0]).to.include({ uid: 'web-1', onlyFrom: 'b' })
    expect(seen(false, 60_999)).to.have.length(1)
    expect(seen(false, 61_000)).to.have.length(0)
    expect(seen(true, 61_000)).to.have.length(1)
    expect(seen(true, 0, () => provedOf('web-1', 5))).to.have.length(0)
  })

  it('converts the times of an agent whose clock is ahead, and forgets its drains in time', () => {
    const union = createUnion()
    const theirs = drainOf('web-1', { deadline: 4000, moments: { seenAt: 3100, ackAt: 3500 } })
    const b = { ...told('b', false, theirs), ahead: 3000 }
    const mine = drainOf('web-1', { deadline: 1000, moments: { seenAt: 120 } })
    const options = { own: named([mine]), others: [b], finished: none, now: 0 }
    const [drain] = union(options)
    expect(drain?.moments).to.include({ seenAt: 100, ackAt: 500 })
    expect(drain?.deadline).to.equal(1000)
    expect(union(options)[0]).to.equal(drain)
    const alone = { own: new Map(), others: [b], finished: none }
    expect(union({ ...alone, now: 60_999 })).to.have.length(1)
    expect(union({ ...alone, now: 61_000 })).to.have.length(0)
  })

  it('knows that the pod is gone as soon as one agent knows', () => {
    const union = createUnion()
    const [drain] = union({
      own: named([drainOf('web-1')]),
      others: [],
      finished: () => provedOf('web-1', 5),
      now: 0
    })
    expect(drain).to.include({ phase: 'gone' })
    expect(drain?.verdict?.kind).to.equal('proven')
  })
})
