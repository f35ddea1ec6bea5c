import { readFileSync } from 'node:fs'

/** The interval of the samples; a delay beyond this is a stall. In ms. */
const EVERY_MS = 20
const LATE_MS = 30
/** The least time between two samples, in ms, for loops that ask often. */
const SAMPLE_MS = 5
/** For this process's main thread (Linux, proc(5)): ns on the CPU, ns ready to run without a CPU, and the number of time slices. */
const SCHEDSTAT = '/proc/self/schedstat'

interface Sample {
  readonly at: number
  /** The time lost so far, in ms. */
  readonly lost: number
}

const samples: Sample[] = []
let waited = 0

/**
 * The part of a time span (monotonic clock) in which this process could not run, in ms: other processes had the cores, in
 * long pieces or in many short ones, or something blocked this process. Agent, pods and gateways of a rig share the process,
 * so none of them is to blame.
 */
export function stalledMs(from: number, to: number): number {
  look()
  return lostBy(to) - lostBy(from)
}

/** Begins to measure; a second call does nothing. The timer does not keep the process alive. */
export function measureStalls(): void {
  if (samples.length > 0) return
  waited = waitedMs()
  samples.push({ at: performance.now(), lost: 0 })
  setInterval(look, EVERY_MS).unref()
}

function look(): void {
  const before = samples.at(-1)
  const at = performance.now()
  if (!before || at < before.at + SAMPLE_MS) return
  const now = waitedMs()
  const late = at - before.at > EVERY_MS + LATE_MS ? at - before.at : 0
  samples.push({ at, lost: before.lost + Math.max(late, now - waited) })
  waited = now
}

function waitedMs(): number {
  try {
    return Number(readFileSync(SCHEDSTAT, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/** The time lost before a moment, interpolated between two samples. */
function lostBy(at: number): number {
  let [low, high] = [0, samples.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (samples[middle]!.at <= at) low = middle + 1
    else high = middle
  }
  const [before, after] = [samples[low - 1], samples[low]]
  if (!before) return 0
  if (!after) return before.lost
  return before.lost + ((after.lost - before.lost) * (at - before.at)) / (after.at - before.at)
}
