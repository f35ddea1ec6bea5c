import type { Millis } from '../../rules/drain/facts.ts'

/** A finished write: when it ended, and how many nodes it removed. */
export interface Written {
  readonly at: Millis
  readonly nodes: number
}

/** How long writes are remembered, in ms, and the longest pause. */
export const WINDOW_MS = 1000
/** The pause after one node, in ms. */
const STEP_MS = 40

/**
 * When the next write to an object may begin. A single removal is written at once. The more nodes have just been removed, the
 * longer the next removals are gathered (quadratic: 40 ms after one node, a second after five). This does not slow down a rolling
 * update. Hundreds of pods that end within one second cost three writes, whether they end at once or one by one.
 */
export function nextWriteAt(written: readonly Written[], now: Millis): Millis {
  const recent = written.filter(w => w.at > now - WINDOW_MS)
  const last = recent.at(-1)
  if (!last) return now
  const nodes = recent.reduce((sum, w) => sum + w.nodes, 0)
  return Math.max(now, last.at + Math.min(WINDOW_MS, STEP_MS * nodes ** 2))
}
