import type { Millis } from '../drain/facts.ts'

/** How far the API server's clock is behind ours, from the Date headers of its answers. */
export interface ClockOffset {
  note(date: string | undefined, now: Millis): void
  /** ms to add to a time of the API server to have it on our clock; 0 while they agree as far as can be seen. */
  behindMs(): number
}

/** Date headers are cut to whole seconds. */
const RESOLUTION_MS = 1000
/** Less than that is not told apart from the resolution and the time an answer takes. */
const AGREE_MS = 2000
const SAMPLES = 10

/**
 * Each answer says "at least this far behind, and at most a second and its own travel less". The smallest of the last few is
 * the nearest, and a second less than that is never too much: deadlines may come out early by it, not late.
 */
export function createClockOffset(): ClockOffset {
  const samples: number[] = []
  return {
    note(date, now) {
      const at = Date.parse(date ?? '')
      if (Number.isNaN(at)) return
      samples.push(now - at)
      if (samples.length > SAMPLES) samples.shift()
    },
    behindMs() {
      if (samples.length === 0) return 0
      const behind = Math.min(...samples) - RESOLUTION_MS
      return Math.abs(behind) < AGREE_MS ? 0 : behind
    }
  }
}
