import { expect } from 'chai'
import * as fc from 'fast-check'
import { apply, diff } from '../../../../agent/report/snapshot/snapshot-change.ts'
import type { Snapshot } from '../../../../agent/report/snapshot/snapshot.ts'
import { anySnapshot } from '../../../build/arbitrary-snapshot.ts'

describe('change', () => {
  const wired = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

  it('law: a change applied to a snapshot gives the next snapshot', () => {
    fc.assert(
      fc.property(anySnapshot, anySnapshot, (before, after) => {
        expect(apply(wired(before), wired(diff(before, after)))).to.deep.equal(wired(after))
      }),
      { numRuns: 500 }
    )
  })

  it('law: a chain of changes ends at the last snapshot', () => {
    fc.assert(
      fc.property(fc.array(anySnapshot, { minLength: 2, maxLength: 6 }), snapshots => {
        const [first, ...rest] = snapshots as [Snapshot, ...Snapshot[]]
        let [shown, last] = [wired(first), first]
        for (const next of rest) {
          shown = apply(shown, wired(diff(last, next)))
          last = next
        }
        expect(shown).to.deep.equal(wired(last))
      }),
      { numRuns: 200 }
    )
  })

  it('law: without a change, only the time is sent', () => {
    fc.assert(
      fc.property(anySnapshot, fc.nat(), (snapshot, at) => {
        expect(diff(snapshot, { ...wired(snapshot), at })).to.deep.equal({ at })
      })
    )
  })

  const any = (seed: number) => fc.sample(anySnapshot, { seed, numRuns: 1 })[0]!
  const base: Snapshot = { ...any(1), drains: [], past: [], acks: [], lags: [] }
  const lag = (at: number) => ({
    at,
    ms: 1,
    grade: 'barrier' as const,
    uid: `pod-${at}`,
    namespace: 'shop',
    owner: null
  })

  it('contains only the differences', () => {
    const holders = ['a', 'b', 'c'].map(key => ({
      key,
      name: null,
      owner: 'unknown' as const,
      form: 'map' as const,
      service: null,
      nodes: [],
      ghosts: [],
      missing: [],
      notReady: [],
      revision: 1,
      behind: null,
      lags: [],
      onSuccessors: null
    }))
    const before = { ...base, holders }
    const changed = { ...holders[1]!, nodes: ['10.0.0.1:80'] }
    const after = { ...before, holders: [holders[0]!, changed] }
    expect(diff(before, after)).to.deep.equal({ at: base.at, holders: { put: [changed], gone: ['c'] } })
    const moved = { ...before, holders: holders.toReversed() }
    expect(diff(before, moved)).to.deep.equal({ at: base.at, holders: { order: ['c', 'b', 'a'] } })
  })

  it('sends only the new items of a full list that is newest first, those that left, and changed ones in their place', () => {
    const before = { ...base, lags: [lag(3), lag(2), lag(1)] }
    const better = { ...lag(2), ms: 0 }
    expect(diff(before, { ...base, lags: [lag(4), lag(3), better] }).lags).to.deep.equal({
      put: [lag(4), better],
      gone: ['pod-1']
    })
  })

  it('keeps the objects of unchanged parts', () => {
    const [before, after] = [any(2), { ...any(2), at: 9 }]
    const next = apply(before, diff(before, after))
    expect(next.holders).to.equal(before.holders)
    expect(next.drains).to.equal(before.drains)
  })
})
