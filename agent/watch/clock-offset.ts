import type { Millis } from '../drain/facts.ts'

/** How far the API server's clock is behind ours, from the Date headers of its answers. */
export interface ClockOffset {
  /** @param askedAt when the request was sent, `heardAt` when the head of its answer came: the server read its clock in between */
  note(date: string | undefined, askedAt: Millis, heardAt: Millis): void
  /** ms to add to a time of the API server to have it on our clock; 0 while the clocks may agree. */
  behindMs(): number
}

/** Date headers are cut to whole seconds. */
const RESOLUTION_MS = 1000
/** Clocks drift, and are set by less than shows: what was learned longer ago does not count. */
const SAMPLES = 10

interface Bounds {
  readonly least: number
  readonly most: number
}

/**
 * Each answer says how far the server is behind at least and at most, however its way there and its way back divide the time
 * that it took (Cristian's algorithm). The offset is within what the last few have in common, and the least of that is never too much:
 * deadlines may come early by it (by a second, and the time of the quickest answer), not late. Where 0 is within, it is 0: a server that is
 * ahead of us by less than that is taken for equal. An answer that has nothing in common with those before it shows that the
 * server's clock was set; a smaller step is forgotten with the tenth answer after it.
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
