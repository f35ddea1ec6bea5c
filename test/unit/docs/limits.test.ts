import { expect } from 'chai'
import type { HookArm } from '../../bench/hooks.ts'
import { limits } from '../../bench/limits.ts'
import { lostRow } from '../../bench/lost.ts'

describe('the limits of docs/lab/benchmarks.md', () => {
  const overhead = (p50: number, p99: number) => [
    { 'hook after the deletion, ms': 10, 'ratio p50': 9, 'ratio p99': 9 },
    { 'hook after the deletion, ms': 0, 'ratio p50': p50, 'ratio p99': p99 }
  ]

  it('are met up to their bound, and missed above it, with the reason', () => {
    const [p50, p99] = limits({ overhead: overhead(1.5, 3.01) })
    expect(p50).include({ measured: 1.5, '': 'met', why: '' })
    expect(p99).include({ measured: 3.01, '': '**missed**' })
    expect(p99?.['why']).not.equal('')
  })

  it('use the longest of several rounds, and leave out values that were not measured', () => {
    const rows = [{ ending: 500, 'drained before': 0, 'p99 of the rounds': '400, 1001, 900' }]
    expect(limits({ 'at-once': rows })).length(1)
    expect(limits({ 'at-once': rows })[0]).include({ measured: 1001, '': '**missed**' })
    expect(limits({})).eql([])
  })

  it('are missed by a naive way that loses nothing, and by a barrier that loses one request in one round', () => {
    const of = (arm: HookArm, ...failed: readonly number[]) =>
      lostRow(
        arm,
        failed.map(count => ({ requests: 100, ended: 20, failed: count, timedOut: 0, hookMs: [5] }))
      )
    const met = limits({ lost: [of('no-hook', 0, 3, 4), of('drain-barrier', 0, 0, 0)] })
    expect(met.map(({ measured, '': is }) => `${measured} ${is}`)).eql(['0 met', '150 met'])
    const missed = limits({ lost: [of('admin-answered', 0, 0, 4), of('drain-barrier', 0, 1, 0)] })
    expect(missed.map(({ measured, '': is }) => `${measured} ${is}`)).eql(['50 **missed**', '0 **missed**'])
  })
})
