import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { closingLinesOf, failuresOf } from '../../../scripts/tests/failures.ts'

describe('the end of a failed run', () => {
  it('names each failure of every program, once', () => {
    const named = [
      'failed: a drain ends its pod: not in 20000 ms: the pod is out (test/feature/drains.test.ts:12)',
      'failed: skipped: a drain with curl',
      'run 12 FAILED: a node is back',
      'FAILED W4: the gateway does not look again: is caught (1.2 s): it was not caught',
      'MISSED 1: no second look',
      '--- FAIL: TestRetries (0.01s)',
      'ERROR: Coverage for branches (98.5%) does not meet threshold (100%) for agent/rules/drain/step.ts'
    ]
    const output = ['  ✔ a drain FAILED: as it must', ...named, ...named, '', '2 passed, 1 failed', ''].join(
      '\n'
    )
    expect(failuresOf(output)).eql(named)
  })

  it('shows the last lines if the program ended before it named a failure', () => {
    const output = Array.from({ length: 30 }, (_, i) => `line ${i}\n\n`).join('')
    expect(failuresOf(output)).eql([22, 23, 24, 25, 26, 27, 28, 29].map(i => `line ${i}`))
  })

  it('fits into what CI keeps of a log, with the output of every other suite', () => {
    const output = Array.from({ length: 30 }, (_, i) => `failed: ${i} ${'long '.repeat(200)}\n`).join('')
    const shown = failuresOf(output)
    expect(shown).to.have.length(13)
    expect(shown.at(-1)).to.equal('and 18 more')
    expect(shown.join('\n').length).to.be.below(3000)
  })

  it('gets the title, message and place of a failed test from the reporter', () => {
    const directory = mkdtempSync(join(tmpdir(), 'apisix-drain-reporter-'))
    try {
      mkdirSync(join(directory, 'test'))
      const spec = join(directory, 'test', 'two.test.cjs')
      writeFileSync(
        spec,
        "describe('two', () => {\n  it('holds', () => {})\n  it('fails', () => {\n    throw new Error('first\\nsecond')\n  })\n})\n"
      )
      const args = ['--no-config', '--reporter', './test/reporter.mjs', spec]
      const { stdout, status } = spawnSync('mocha', args, { encoding: 'utf8' })
      expect([failuresOf(stdout), status]).eql([['failed: two fails: first (test/two.test.cjs:4)'], 1])
      expect(closingLinesOf(stdout)).eql(['1 passed, 1 failed'])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
