import type { Millis } from '../../rules/drain/facts.ts'

/** How far the API server's clock is behind the agent's, from the Date headers of its answers. */
interface ClockOffset {
  /** @param askedAt when the request was sent. @param heardAt when the head of its answer came: the server read its clock in between */
  note(date: string | undefined, askedAt: Millis, heardAt: Millis): void
  /** The ms to add to a time of the API server to convert it to the agent's clock; 0 while the clocks may agree. */
  behindMs(): number
}

/** The resolution of Date headers: whole seconds. */
const RESOLUTION_MS = 1000
/** How many answers count: clocks drift, and a single answer may not show a small step of the clock. */
const SAMPLES = 10

interface Bounds {
  readonly least: number
  readonly most: number
}

/**
 * Each answer gives a lower and an upper bound of the offset, however its time divides between request and response (Cristian's algorithm).
 * The offset lies where the bounds of the last ten answers overlap. The lower end of that range is used, because it is never too high.
 * So deadlines may come early (by a second and the time of the quickest answer), but not late. If the range includes 0, the offset is 0, so
 * a server whose clock is ahead by less than that counts as equal. An answer outside of the range shows that the server's clock was set. A
 * smaller step has its full effect after ten more answers.
 */
export function createClockOffset(): ClockOffset {
  let samples: Bounds[] = []
  const common = (): Bounds => ({
    least: Math.max(...samples.map(({ least }) => least)),
    most: Math.min(...samples.map(({ most }) => most))
  })
  return {
    note(date, askedAt, heardAt) {
      const at = Date.parse(date ?? '')
      if (Number.isNaN(at)) return
      const sample = { least: askedAt - at - RESOLUTION_MS, most: heardAt - at }
      samples = [...samples, sample].slice(-SAMPLES)
      const { least, most } = common()
      if (least > most) samples = [sample]
    },
    behindMs() {
      if (samples.length === 0) return 0
      const { least, most } = common()
      return least <= 0 && most >= 0 ? 0 : least
    }
  }
}
