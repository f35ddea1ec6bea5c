import type { Clock } from '../base/clock.ts'
import { fail, wordsOf, type Check, type Finding } from '../checks/finding.ts'

interface Diagnosis {
  /** No check failed. Warnings are allowed. */
  readonly healthy: boolean
  readonly findings: readonly Finding[]
}

/** A check that takes longer than this has failed, in ms. */
const CHECK_MS = 30_000

/** Runs all checks in parallel; the findings come in the order of the checks. Never rejects. */
export async function examine(checks: Readonly<Record<string, Check>>, clock: Clock): Promise<Diagnosis> {
  const findings = (
    await Promise.all(Object.entries(checks).map(([name, check]) => bounded(name, check, clock)))
  ).flat()
  return { healthy: findings.every(finding => finding.level !== 'fail'), findings }
}

async function bounded(name: string, check: Check, clock: Clock): Promise<readonly Finding[]> {
  const late = new AbortController()
  const { promise: overdue, resolve } = Promise.withResolvers<readonly Finding[]>()
  const cancel = clock.alarm(clock.now() + CHECK_MS, () => {
    late.abort(new Error('the check took too long'))
    resolve([
      fail(
        name,
        `no answer within ${CHECK_MS / 1000} s`,
        'look at the network between the agent and what is checked'
      )
    ])
  })
  try {
    return await Promise.race([overdue, check(late.signal)])
  } catch (err) {
    return [fail(name, `the check itself failed: ${wordsOf(err)}`, 'please report this')]
  } finally {
    cancel()
  }
}

const MARKS = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

/** Plain lines for people: no colours, no fixed width. */
export function formatDiagnosis({ healthy, findings }: Diagnosis): string {
  const lines = findings.flatMap(({ name, level, what, change }) => [
    `${MARKS[level]}  ${name}: ${what}`,
    ...(change === '' ? [] : [`        -> ${change}`])
  ])
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const verdict = healthy ? 'the agent can work here' : 'the agent cannot work here as configured'
  return `${lines.join('\n')}\n\n${count('ok')} ok, ${count('warn')} warnings, ${count('fail')} failed: ${verdict}\n`
}
