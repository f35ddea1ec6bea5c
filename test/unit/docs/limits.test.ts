import { expect } from 'chai'
import { limits } from '../../bench/limits.ts'

describe('the limits of docs/benchmarks.md', () => {
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
})
