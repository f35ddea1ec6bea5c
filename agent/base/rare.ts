import type { Clock } from './clock.ts'

/** At most this number of lines in each span of `EVERY_MS`. */
export const MOST_LINES = 10
export const EVERY_MS = 60_000

export type Rare = ReturnType<typeof createRare>

/** A rate limit for log lines that any caller can cause. */
export function createRare({ now }: Pick<Clock, 'now'>) {
  let began = -Infinity
  let said = 0
  let leftOut = 0
  return {
    /** `undefined`: leave the line out. Otherwise: log it, with the number of lines that were left out since the last one. */
    next(): number | undefined {
      if (now() >= began + EVERY_MS) {
        began = now()
        said = 0
      }
      said++
      if (said > MOST_LINES) return void leftOut++
      const before = leftOut
      leftOut = 0
      return before
    }
  }
}
