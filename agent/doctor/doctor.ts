import type { Clock } from '../base/clock.ts'
import { fail, wordsOf, type Check, type Finding } from './checks/finding.ts'

interface Diagnosis {
  /** No check failed. Warnings are allowed. */
  readonly healthy: boolean
  readonly findings: readonly Finding[]
  /** Checks that were not made, with the failed check that explains them. */
  readonly skipped: readonly { readonly name: string; readonly because: string }[]
}

/** A check, and the names of the checks that must succeed first. */
export interface Step {
  readonly name: string
  readonly check: Check
  readonly after?: readonly string[]
}

/** A check that takes longer than this has failed, in ms. */
const CHECK_MS = 30_000

/**
 * Runs all checks in parallel, each after the checks that it needs. If a check fails, the checks that need it are skipped, so the
 * failure is reported once. The findings come in the order of the checks. Never rejects.
 */
export async function examine(steps: readonly Step[], clock: Clock): Promise<Diagnosis> {
  const results = new Map<Step, Promise<Result>>()
  const take = async (step: Step): Promise<Result> => {
    for (const need of steps.filter(({ name }) => step.after?.includes(name))) {
      const { findings = [], skipped } = (await results.get(need)) ?? {}
      const failed =
        skipped?.because ?? (findings.some(({ level }) => level === 'fail') ? need.name : undefined)
      if (failed !== undefined) return { skipped: { name: step.name, because: failed } }
    }
    return { findings: await bounded(step.name, step.check, clock) }
  }
  for (const step of steps) results.set(step, take(step))
  const all = await Promise.all(results.values())
  const findings = all.flatMap(result => result.findings ?? [])
  const skipped = all.flatMap(result => result.skipped ?? [])
  return { healthy: findings.every(finding => finding.level !== 'fail'), findings, skipped }
}

interface Result {
  readonly findings?: readonly Finding[]
  readonly skipped?: Diagnosis['skipped'][number]
}

async function bounded(name: string, check: Check, clock: Clock): Promise<readonly Finding[]> {
  const late = new AbortController()
  const { promise: overdue, resolve } = Promise.withResolvers<readonly Finding[]>()
  const cancel = clock.alarm(clock.now() + CHECK_MS, () => {
    late.abort(new Error('the check took too long'))
    const change = 'look at the network between the agent and what is checked'
    resolve([fail(name, `no answer within ${CHECK_MS / 1000} s`, change)])
  })
  try {
    return await Promise.race([overdue, check(late.signal)])
  } catch (err) {
    return [
      fail(name, `cannot be checked: ${wordsOf(err)}`, 'correct what the message names, then try again')
    ]
  } finally {
    cancel()
  }
}

const MARKS = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

/** Plain lines for a terminal: no colours, no fixed width. */
export function formatDiagnosis({ healthy, findings, skipped }: Diagnosis): string {
  const lines = findings.flatMap(({ name, level, what, change }) => [
    `${MARKS[level]}  ${name}: ${what}`,
    ...(change === '' ? [] : [`        -> ${change}`])
  ])
  const left = Map.groupBy(skipped, ({ because }) => because)
  for (const [because, checks] of left) {
    const names = [...new Set(checks.map(({ name }) => name))].join(', ')
    lines.push(`skip  ${names}: not checked, because ${because} failed`)
  }
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const verdict = healthy ? 'the agent can work here' : 'the agent cannot work here as configured'
  const warnings = `${count('warn')} ${count('warn') === 1 ? 'warning' : 'warnings'}`
  return `${lines.join('\n')}\n\n${count('ok')} ok, ${warnings}, ${count('fail')} failed: ${verdict}\n`
}
