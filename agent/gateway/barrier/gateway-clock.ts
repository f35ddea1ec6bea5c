import type { Millis } from '../../rules/drain/facts.ts'

/** The offset between one gateway's clock and the agent's, from the times in its answers. */
export interface GatewayClock {
  /** Takes the times of one answer, in ms: request and receipt by the agent's clock, and `told`, the gateway's own time in the answer. */
  note(askedAt: Millis, receivedAt: Millis, told: number): void
  /**
   * Converts a gateway's time to the agent's clock. The result always lies between request and receipt. So if a clock jumps, the error
   * is at most the length of the call.
   */
  onOurs(askedAt: Millis, receivedAt: Millis, told: number): Millis
  /** How far the gateway's clock is ahead of the agent's, in ms; 0 before the first answer. */
  ahead(): number
  /** The largest error of a converted time, in ms. */
  within(): number
}

/** The bounds of the gateway clock's lead, from all answers since `at`. The gateway read its clock between request and receipt. */
interface Bounds {
  readonly at: Millis
  readonly least: number
  readonly most: number
}

/** Clocks drift by some ppm. So bounds are kept for at most twice this time, in ms, while answers come. */
const SPAN_MS = 30_000

/**
 * The quickest request bounds the offset from one side, and the quickest response from the other, perhaps in different
 * exchanges. Nothing narrows the range between the two bounds further, so its middle is used.
 */
export function createGatewayClock(): GatewayClock {
  let spans: readonly Bounds[] = []
  const bounds = (): Pick<Bounds, 'least' | 'most'> => ({
    least: Math.max(...spans.map(({ least }) => least)),
    most: Math.min(...spans.map(({ most }) => most))
  })
  return {
    note(askedAt, receivedAt, told) {
      const [current, previous] = spans
      const seen = { at: receivedAt, least: told - receivedAt, most: told - askedAt }
      if (current && receivedAt - current.at < SPAN_MS) {
        const both = {
          at: current.at,
          least: Math.max(current.least, seen.least),
          most: Math.min(current.most, seen.most)
        }
        spans = previous ? [both, previous] : [both]
      } else spans = current ? [seen, current] : [seen]
      const { least, most } = bounds()
      // The bounds contradict each other, because one of the two clocks was set. So only the newest answer counts.
      if (least > most) spans = [seen]
    },
    ahead() {
      const { least, most } = bounds()
      return spans.length === 0 ? 0 : (least + most) / 2
    },
    within() {
      const { least, most } = bounds()
      return spans.length === 0 ? Infinity : Math.max(0, most - least) / 2
    },
    onOurs(askedAt, receivedAt, told) {
      const { least, most } = bounds()
      return spans.length === 0
        ? receivedAt
        : Math.min(receivedAt, Math.max(askedAt, told - (least + most) / 2))
    }
  }
}
