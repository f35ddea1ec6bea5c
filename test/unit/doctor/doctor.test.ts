import { expect } from 'chai'
import { examine, formatDiagnosis } from '../../../agent/doctor/doctor.ts'
import { fail, ok, warn } from '../../../agent/checks/finding.ts'
import { manualClock } from '../../build/manual-clock.ts'

describe('doctor: the examination', () => {
  it('runs all checks in parallel and keeps their order', async () => {
    const clock = manualClock()
    const first = Promise.withResolvers<void>()
    const diagnosis = examine(
      {
        slow: async () => (await first.promise, [ok('slow', 'in the end')]),
        quick: async () => (first.resolve(), [warn('quick', 'almost', 'do this')])
      },
      clock
    )
    const { healthy, findings } = await diagnosis
    expect(healthy).to.equal(true)
    expect(findings.map(finding => finding.name)).to.deep.equal(['slow', 'quick'])
    expect(clock.pending).to.equal(0)
  })

  it('is not healthy if one check fails', async () => {
    const { healthy } = await examine(
      { a: async () => [ok('a', ''), fail('a', 'bad', 'do that')] },
      manualClock()
    )
    expect(healthy).to.equal(false)
  })

  it('ends a check that takes too long, and survives one that throws', async () => {
    const clock = manualClock()
    let aborted: AbortSignal | undefined
    const diagnosis = examine(
      {
        stuck: signal => ((aborted = signal), new Promise(() => {})),
        broken: () => Promise.reject(new Error('a bug'))
      },
      clock
    )
    clock.advance(30_000)
    expect(
      (await diagnosis).findings.map(({ name, level, what }) => `${level} ${name}: ${what}`)
    ).to.deep.equal(['fail stuck: no answer within 30 s', 'fail broken: the check itself failed: a bug'])
    expect(aborted?.aborted).to.equal(true)
  })

  it('prints a report that names the remedies', () => {
    const findings = [
      ok('kubernetes', 'answers'),
      warn('pods', 'none', 'add the hook'),
      fail('rbac', 'no watch', 'add it')
    ]
    expect(formatDiagnosis({ healthy: false, findings })).to.equal(`ok    kubernetes: answers
warn  pods: none
        -> add the hook
FAIL  rbac: no watch
        -> add it

1 ok, 1 warnings, 1 failed: the agent cannot work here as configured
`)
    expect(formatDiagnosis({ healthy: true, findings: [] })).to.include('the agent can work here')
  })
})
