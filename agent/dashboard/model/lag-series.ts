import type { LagSample } from '../../report/snapshot/drain-view.ts'

/** How many values there are, and their p50, p99 and maximum, in their unit. */
export interface Quantiles {
  readonly n: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export function quantiles(values: readonly number[]): Quantiles | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (q: number) => sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)]
  const [p50, p99, max] = [at(0.5), at(0.99), sorted.at(-1)]
  return p50 === undefined || p99 === undefined || max === undefined
    ? undefined
    : { n: sorted.length, p50, p99, max }
}

/** Columns for a chart: `at` in seconds since the epoch, the others in ms. `idle`: the median time until a pod's last request ended. */
export type Series = readonly [at: number[], p50: Value[], p99: Value[], max: Value[], idle: Value[]]

type Value = number | null

const POINTS = 60

/** The samples of the last `rangeMs` before `now`. */
export const within = (samples: readonly LagSample[], rangeMs: number, now: number): readonly LagSample[] =>
  samples.filter(({ at }) => at > now - rangeMs)

/**
 * One point for every 60th part of the range that ends `now`, from the samples in that part. A part without samples is `null`, which
 * makes a gap in the line.
 */
export function seriesOf(samples: readonly LagSample[], rangeMs: number, now: number): Series {
  const width = rangeMs / POINTS
  // The bounds of parts do not depend on `now`, so the points do not jump while time passes.
  const [first, last] = [Math.floor((now - rangeMs) / width), Math.floor(now / width)]
  const parts = Map.groupBy(samples, ({ at }) => Math.min(last, Math.floor(at / width)))
  const series: Series = [[], [], [], [], []]
  for (let part = first; part <= last; part++) {
    const some = parts.get(part) ?? []
    const found = quantiles(some.map(({ ms }) => ms))
    const idle = quantiles(some.flatMap(({ idleMs }) => idleMs ?? []))
    series[0].push(Math.min(now, (part + 0.5) * width) / 1000)
    series[1].push(found?.p50 ?? null)
    series[2].push(found?.p99 ?? null)
    series[3].push(found?.max ?? null)
    series[4].push(idle?.p50 ?? null)
  }
  return series
}

/** The upper bounds of the bars, in ms. Lags above the last bound count in the last bar. */
export const BOUNDS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000] as const

interface Bar {
  readonly upTo: number
  readonly samples: number
}

export function histogramOf(samples: readonly LagSample[]): readonly Bar[] {
  const bars = BOUNDS.map(() => 0)
  for (const { ms } of samples) {
    const i = BOUNDS.findIndex(bound => ms <= bound)
    const last = i === -1 ? bars.length - 1 : i
    bars[last] = (bars[last] ?? 0) + 1
  }
  return BOUNDS.map((upTo, i) => ({ upTo, samples: bars[i] ?? 0 }))
}

/** The position of a duration on the histogram's axis, 0 to 1: linear within each bar. */
export function placeOf(ms: number): number {
  const i = BOUNDS.findIndex(bound => ms <= bound)
  if (i === -1) return 1
  const [low, high] = [BOUNDS[i - 1] ?? 0, BOUNDS[i] ?? 0]
  return (i + (ms - low) / (high - low)) / BOUNDS.length
}
