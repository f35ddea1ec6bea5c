import type { Millis } from '../drain/facts.ts'

/** Quiet time with a ceiling: after a burst has been quiet for `quietMs`, but never later than `ceilingMs` after the last run. */
export function nextRunAt(
  now: Millis,
  lastRun: Millis | undefined,
  quietMs: number,
  ceilingMs: number
): Millis {
  return lastRun === undefined ? now : Math.min(now + quietMs, Math.max(now, lastRun + ceilingMs))
}
