import type { LoadResult } from './load/options.ts'
import { hasAgent, type ArmName } from './cli.ts'

/** The result of one arm: rolling updates under load. Every figure was measured in this run. */
interface ArmResult {
  readonly name: ArmName
  readonly requests: number
  readonly failed: number
  /** From the start of a hook's process to its end. All 0 if there are no hooks. */
  readonly hookMs: { readonly p50: number; readonly p99: number; readonly max: number }
  /** From the change of the template until the last old pod is gone and every new one is available; the sum of two updates. */
  readonly rolloutMs: number
}

/** The result with more fields than `--json` prints, for the lines under the table. */
export interface ArmDetail extends ArmResult {
  readonly load: LoadResult
  /** Hooks that were run, and those that failed. */
  readonly hooks: { readonly run: number; readonly failed: number }
  /** The agent's answers, counted; empty in arms without it. */
  readonly answers: Readonly<Record<string, number>>
  /** With `--pod-rate`: for how long a pod got more than it serves, at most; in ms. */
  readonly aboveMs: number | undefined
  /** Requests that reached a pod after its hook had ended, answered or not. */
  readonly late: number
}

/** The object that `--json` prints: exactly these fields. */
export const jsonReport = (arms: readonly ArmResult[]): { readonly arms: readonly ArmResult[] } => ({
  arms: arms.map(({ name, requests, failed, hookMs, rolloutMs }) => ({
    name,
    requests,
    failed,
    hookMs: { p50: hookMs.p50, p99: hookMs.p99, max: hookMs.max },
    rolloutMs
  }))
})

/** True only if an arm with the agent ran, and each such arm sent requests and had no failure. */
export function succeeded(arms: readonly ArmResult[]): boolean {
  const ours = arms.filter(({ name }) => hasAgent(name))
  return ours.length > 0 && ours.every(({ requests, failed }) => requests > 0 && failed === 0)
}

const HEAD = ['', 'requests', 'failed', 'hook p50', 'p99', 'max', 'rollout']

const ms = (value: number) => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(0)} ms`)

/** The table at the end of a run. */
export function table(arms: readonly ArmDetail[]): string {
  const rows = arms.map(({ name, requests, failed, hookMs, rolloutMs, hooks }) => {
    const hook = hooks.run === 0 ? ['–', '–', '–'] : [ms(hookMs.p50), ms(hookMs.p99), ms(hookMs.max)]
    return [name, String(requests), String(failed), ...hook, ms(rolloutMs)]
  })
  const widths = HEAD.map((_, column) => Math.max(...[HEAD, ...rows].map(row => (row[column] ?? '').length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('   ')
      .trimEnd()
  return [line(HEAD), ...rows.map(line), ...ratio(arms), ...arms.flatMap(notes)].join('\n')
}

/** Compares the time that the hook takes with the sleep that it replaces. */
function ratio(arms: readonly ArmDetail[]): string[] {
  const p50 = (hook: string) => arms.find(({ name }) => name.endsWith(hook))?.hookMs.p50 ?? 0
  const [sleep, drain] = [p50('sleep-5'), p50('apisix-drain')]
  if (drain === 0) return []
  const times = sleep / drain
  const compared =
    sleep === 0
      ? ''
      : times >= 1.5
        ? `, ${times.toFixed(0)} times shorter than the sleep`
        : ', no gain over the sleep'
  return [
    `apisix-drain: half of the hooks took ${ms(drain)} or less${compared}; a hook waits for the slowest request`,
    '              in flight to its pod, and until the gateways know a replacement for it'
  ]
}

const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ')

/** Lists failed requests and hooks, because a row of numbers cannot show them. */
function notes({ name, load, hooks, late, answers, aboveMs }: ArmDetail): string[] {
  const kinds = Object.entries(load.byRequest)
    .filter(([, { failed }]) => failed > 0)
    .map(([kind, { failed }]) => `${failed} × ${kind}`)
  const how = Object.entries(load.byKind)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} × ${kind}`)
  return [
    ...(kinds.length > 0 ? [`${name}: failed ${kinds.join(', ')} (${how.join(', ')})`] : []),
    ...(Object.keys(answers).length > 0 ? [`${name}: hooks answered ${list(answers)}`] : []),
    ...(aboveMs === undefined ? [] : [`${name}: a pod was above its limit for ${ms(aboveMs)} at most`]),
    ...(late > 0 ? [`${name}: ${late} requests reached a pod after its hook had ended`] : []),
    ...(hooks.failed > 0 ? [`${name}: ${hooks.failed} of ${hooks.run} hooks failed`] : [])
  ]
}
