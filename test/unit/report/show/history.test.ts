import { expect } from 'chai'
import * as fc from 'fast-check'
import { EMPTY, LIMITS, withAck, withPast, withProof } from '../../../../agent/report/show/record.ts'
import {
  idleLagOf,
  lagOf,
  latestDecision,
  type DrainView,
  type Moments
} from '../../../../agent/report/snapshot/drain-view.ts'
import { pod } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'
import { waitingView } from '../../../build/snapshot.ts'

const view = waitingView()
const shown = (moments: Partial<Moments>, grade: 'barrier' | null = 'barrier'): DrainView => ({
  ...view,
  moments: { ...view.moments, ...moments },
  verdict: { kind: 'proven', grade, places: 1, lastEndpoint: false }
})
const named = (i: number, moments: Partial<Moments>) => ({ ...shown(moments), uid: `uid-${i}` })
const OF_VIEW = { uid: view.uid, namespace: view.namespace, owner: view.owner }

describe('sync lag', () => {
  type Row = readonly [
    string,
    decidedAt: number | null,
    seenAt: number,
    confirmedAt: number | null,
    number | null
  ]
  const cases: readonly Row[] = [
    ['the gateways were not observed', 0, 1, null, null],
    ['seen within the stated second', 5000, 5700, 5741, 41],
    ['seen late: counted from the end of that second', 5000, 9000, 9040, 3041],
    ['a hook before the deletion was stated', 5000, 4900, 5040, 40],
    ['no deletion: counted from its first sight', null, 100, 120, 20]
  ]
  for (const [name, decidedAt, seenAt, confirmedAt, expected] of cases)
    it(name, () => expect(lagOf({ sealedAt: null, decidedAt, seenAt, confirmedAt })).to.equal(expected))

  it('law: never negative, and never longer than the time since the stated second', () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.nat(1e6), fc.nat(1e6), (decidedAt, late, took) => {
        const seenAt = decidedAt + late
        const confirmedAt = seenAt + took
        const lag = lagOf({ sealedAt: null, decidedAt, seenAt, confirmedAt })!
        expect(lag).to.be.within(took, confirmedAt - decidedAt)
        expect(latestDecision({ decidedAt, seenAt })).to.be.at.most(seenAt)
      })
    )
  })
})

describe('history', () => {
  it('records a sample of the lag if the gateways were observed', () => {
    const { lags } = withProof(
      EMPTY,
      shown({ decidedAt: 1_000_000, seenAt: 1_000_001, confirmedAt: 1_000_042 })
    )
    expect(lags).to.deep.equal([{ ...OF_VIEW, at: 1_000_042, ms: 41 }])
    expect(withProof(EMPTY, shown({ confirmedAt: null }, null)).lags).to.deep.equal([])
  })

  it('separates the seal from the end of the last request (D3)', () => {
    const moments = { decidedAt: 1_000_000, seenAt: 1_000_001, sealedAt: 1_000_042, confirmedAt: 1_009_000 }
    const { lags } = withProof(EMPTY, shown({ ...moments, idleAt: 1_009_000 }))
    expect(lags).to.deep.equal([{ ...OF_VIEW, at: 1_000_042, ms: 41 }])
    expect(idleLagOf({ ...moments, idleAt: 1_009_000 })).to.equal(8999)
  })

  it('has no lag of a pod that no gateway routed to, and forgets it if it has no hook (D4)', () => {
    const drain = shown({ decidedAt: 1_000_000, seenAt: 1_000_001, confirmedAt: 1_000_042 })
    const cron = { ...drain, verdict: { ...drain.verdict!, places: 0 } }
    expect(withProof(EMPTY, cron).lags).to.deep.equal([])
    expect(withPast(EMPTY, cron).past).to.deep.equal([])
    const asked = { ...cron, moments: { ...cron.moments, ackAt: 1_000_050 } }
    expect(withPast(EMPTY, asked).past).to.deep.equal([asked])
  })

  it('keeps finished drains, newest first, up to its limit', () => {
    let history = EMPTY
    for (let i = 0; i < LIMITS.past + 3; i++) history = withPast(history, named(i, { goneAt: i }))
    expect(history.past).to.have.length(LIMITS.past)
    expect(history.past[0]?.moments.goneAt).to.equal(LIMITS.past + 2)
    for (let i = 0; i < LIMITS.lags + 3; i++) history = withProof(history, named(i, { confirmedAt: i }))
    expect(history.lags).to.have.length(LIMITS.lags)
    for (let i = 0; i < LIMITS.acks + 3; i++)
      history = withAck(history, { at: i, by: 'a', ack: ackFor(pod('web-1')) }, 0)
    expect(history.acks).to.have.length(LIMITS.acks)
    expect(history.acks.at(-1)?.at).to.equal(3)
  })

  it('keeps a drain that was not proved while many others follow (D2)', () => {
    const failed = shown({ goneAt: 0 }, null)
    const waiting = { ...failed.verdict!, kind: 'waiting' as const }
    const left = (drain: Partial<DrainView>) => {
      let history = withPast(EMPTY, { ...failed, verdict: waiting, ...drain })
      for (let i = 1; i < 2 * LIMITS.past; i++) history = withPast(history, named(i, { goneAt: i }))
      return history.past.length - LIMITS.past
    }
    expect(left({})).to.equal(1)
    expect(left({ verdict: { ...waiting, lastEndpoint: true } }), 'held as planned').to.equal(0)
    expect(left({ unlisted: true }), 'nothing led to it').to.equal(0)
  })

  it('keeps one entry of a pod that was proved, or ended, twice', () => {
    const history = withProof(withProof(EMPTY, shown({ confirmedAt: 1 })), shown({ confirmedAt: 2 }))
    expect(history.lags.map(({ at }) => at)).to.deep.equal([2])
    const past = [shown({ seenAt: 1 }), shown({ seenAt: 2 })].reduce(withPast, EMPTY).past
    expect(past.map(({ moments }) => moments.seenAt)).to.deep.equal([2])
    const undone = [1, 2].map(seenAt => ({ ...shown({ seenAt }), phase: 'undone' as const }))
    expect(undone.reduce(withPast, EMPTY).past).to.have.length(2)
  })

  it('counts the time saved, and subtracts the time lost', () => {
    const fast = withAck(EMPTY, { at: 1, by: 'a', ack: ackFor(pod('web-1'), { elapsedMs: 40 }) }, 5000)
    expect(fast.savedMs).to.equal(4960)
    const slow = { at: 2, by: 'a', ack: ackFor(pod('web-2'), { elapsedMs: 12_000 }) }
    expect(withAck(fast, slow, 5000).savedMs).to.equal(-2040)
  })
})
