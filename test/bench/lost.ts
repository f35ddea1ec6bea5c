import type { HookArm, HookRun } from './hooks.ts'
import { spread } from './stats.ts'
import type { Row } from './table.ts'

/** Returns the rounds of one arm as one row, with every round and their median. */
export function lostRow(
  arm: HookArm,
  runs: readonly Pick<HookRun, 'requests' | 'ended' | 'failed' | 'timedOut' | 'hookMs'>[]
): Row {
  const rates = runs.map(({ failed, ended }) => Math.round((failed * 1000) / ended))
  return {
    arm,
    requests: sum(runs.map(({ requests }) => requests)),
    'pods ended': sum(runs.map(({ ended }) => ended)),
    'lost per 1,000 pods, median': spread(rates).p50,
    'every round': rates.join(', '),
    'requests that timed out': sum(runs.map(({ timedOut }) => timedOut)),
    'hook p50 ms': spread(runs.flatMap(({ hookMs }) => hookMs)).p50
  }
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
