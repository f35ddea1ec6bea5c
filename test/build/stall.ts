/** How often this process should get to run, in ms, and how much later than that is a stall. */
const EVERY_MS = 20
const LATE_MS = 30

const stalls: { readonly from: number; readonly to: number }[] = []
let last = 0

/**
 * How long this process did not get to run between two moments of the monotonic clock, in ms: the machine had no time for
 * it, or something blocked it. Agent, pods and gateways of a rig live in one process, so this is no fault of any of them.
 */
export function stalledMs(from: number, to: number): number {
  look()
  let sum = 0
  // The latest first: who asks does so for the time before now, again and again.
  for (let i = stalls.length - 1; i >= 0 && stalls[i]!.to > from; i--)
    sum += Math.max(0, Math.min(to, stalls[i]!.to) - Math.max(from, stalls[i]!.from))
  return sum
}

/** Begins to measure; calling it again does nothing. It does not keep the process alive. */
export function measureStalls(): void {
  if (last > 0) return
  last = performance.now()
  setInterval(look, EVERY_MS).unref()
}

function look(): void {
  const now = performance.now()
  if (last > 0 && now - last > EVERY_MS + LATE_MS) stalls.push({ from: last, to: now })
  if (last > 0) last = now
}
