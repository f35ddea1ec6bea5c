import { expect } from 'chai'
import { examine, formatDiagnosis, type Step } from '../../../agent/doctor/wire-checks.ts'
import { fail, ok, warn, type Check } from '../../../agent/doctor/checks/cluster-lists.ts'
import { manualClock } from '../../build/manual-clock.ts'

const steps = (checks: Readonly<Record<string, Check>>): Step[] =>
  Object.entries(checks).map(([name, check]) => ({ name, check }))

describe('doctor: the examination', () => {
  it('runs all checks in parallel and keeps their order', async () => {
    const clock = manualClock()
    const first = Promise.withResolvers<void>()
    const diagnosis = examine(
      steps({
        slow: async () => (await first.promise, [ok('slow', 'in the end')]),
        quick: async () => (first.resolve(), [warn('quick', 'almost', 'do this')])
      }),
      clock
    )
    const { healthy, findings } = await diagnosis
    expect(healthy).to.equal(true)
    expect(findings.map(finding => finding.name)).to.deep.equal(['slow', 'quick'])
    expect(clock.pending).to.equal(0)
  })

  it('ends a check that takes too long, and survives one that throws', async () => {
    const clock = manualClock()
    let aborted: AbortSignal | undefined
    const diagnosis = examine(
      steps({
        stuck: signal => ((aborted = signal), new Promise(() => {})),
        broken: () => Promise.reject(new Error('a bug'))
      }),
      clock
    )
    clock.advance(30_000)
    expect(
      (await diagnosis).findings.map(({ name, level, what }) => `${level} ${name}: ${what}`)
    ).to.deep.equal(['fail stuck: no answer within 30 s', 'fail broken: cannot be checked: a bug'])
    expect(aborted?.aborted).to.equal(true)
  })

  it('leaves out checks that a failed one explains, and those that depend on them', async () => {
    const made: string[] = []
    const step = (name: string, level: 'ok' | 'fail', after: readonly string[] = []): Step => ({
      name,
      after,
      check: async () => (made.push(name), [level === 'ok' ? ok(name, 'fine') : fail(name, 'bad', 'do that')])
    })
    const { findings, skipped } = await examine(
      [
        step('a', 'fail'),
        step('b', 'ok', ['a']),
        step('c', 'ok', ['b']),
        step('d', 'ok'),
        step('e', 'ok', ['d'])
      ],
      manualClock()
    )
    expect(findings.map(({ name }) => name)).to.deep.equal(['a', 'd', 'e'])
    expect(made).to.have.members(['a', 'd', 'e'])
    expect(skipped).to.deep.equal([
      { name: 'b', because: 'a' },
      { name: 'c', because: 'a' }
    ])
  })

  it('prints a report that names the remedies', () => {
    const findings = [
      ok('kubernetes', 'answers'),
      warn('pods', 'none', 'add the hook'),
      fail('rbac', 'no watch', 'add it')
    ]
    const skipped = [
      { name: 'rbac', because: 'kubernetes' },
      { name: 'pods', because: 'kubernetes' },
      { name: 'pods', because: 'kubernetes' }
    ]
    expect(formatDiagnosis({ healthy: false, findings, skipped })).to.equal(`ok    kubernetes: answers
warn  pods: none
        -> add the hook
FAIL  rbac: no watch
        -> add it
skip  rbac, pods: not checked, because kubernetes failed

1 ok, 1 warning, 1 failed: the agent cannot work here as configured
`)
    expect(formatDiagnosis({ healthy: true, findings: [], skipped: [] })).to.include(
      'the agent can work here'
    )
  })
})
