import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { modeTable, withModeTable, type Measured } from '../../../scripts/docs/mode-table.ts'

const run = (requests: number, failed: number, p50: number, max: number, answers = {}): Measured => ({
  requests,
  failed,
  hookMs: { p50, p99: max, max },
  answers
})

describe('the table of modes', () => {
  const cells = new Map([
    [
      'etcd-1.8',
      {
        none: [run(900, 2, 0, 0), run(901, 3, 0, 0)],
        observed: [run(1000, 0, 500, 800, { 'removed (observed)': 6 })],
        barrier: [
          run(10, 0, 90, 100, { 'drained (barrier)': 6 }),
          run(10, 1, 80, 1234, { 'drained (barrier)': 5, 'no answer': 1 }),
          run(10, 0, 70, 90)
        ]
      }
    ]
  ])

  it('adds up the failures, and gives the hook of the median run and the longest hook', () => {
    const table = modeTable(cells, 'Caption.')
    expect(table).to.include('| `etcd-1.8` | 5 of 1801 | 0 of 1000; 500 ms, 800 ms | 1 of 30; 80 ms, 1.2 s |')
    expect(table).to.include(
      'without the plugin: 6 × removed (observed); with it: 11 × drained (barrier), 1 × no answer.'
    )
  })

  it('replaces its place in the page, also a second time', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/compatibility.md'), 'utf8')
    const once = withModeTable(page, 'first')
    expect(once).to.include('first')
    const twice = withModeTable(once, 'second')
    expect(twice).to.include('second').and.not.include('first\n')
    expect(() => withModeTable('no place', 'x')).to.throw('no <!-- modes')
  })
})
