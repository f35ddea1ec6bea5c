import type { LagSample } from '../../page/snapshot.ts'

/** p50, p99 and the largest of some values, in their unit. */
export interface Quantiles {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export function quantiles(values: readonly number[]): Quantiles | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (q: number) => sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)]
  const [p50, p99, max] = [at(0.5), at(0.99), sorted.at(-1)]
  return p50 === undefined || p99 === undefined || max === undefined ? undefined : { p50, p99, max }
}

/** Columns for a chart: seconds since the epoch, then ms. */
export type Series = readonly [at: number[], p50: number[], p99: number[], max: number[]]

const POINTS = 60

/** At most 60 points over the time that the samples cover, each for the samples around it. Times without samples have none. */
export function seriesOf(samples: readonly LagSample[]): Series {
  const times = samples.map(({ at }) => at)
  const [from, to] = [Math.min(...times), Math.max(...times)]
  const width = Math.max(1000, (to - from) / POINTS)
  const buckets = Map.groupBy(samples, ({ at }) => Math.floor((at - from) / width))
  const series: Series = [[], [], [], []]
  for (const bucket of [...buckets.keys()].sort((a, b) => a - b)) {
    const found = quantiles((buckets.get(bucket) ?? []).map(({ ms }) => ms))
    if (!found) continue
    series[0].push((from + (bucket + 0.5) * width) / 1000)
    series[1].push(found.p50)
    series[2].push(found.p99)
    series[3].push(found.max)
  }
  return series
}

/** Upper bounds in ms; the last bar takes all longer lags. */
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

/** Where a length is on the histogram's axis, 0 to 1: linear within each bar. */
export function placeOf(ms: number): number {
  const i = BOUNDS.findIndex(bound => ms <= bound)
  if (i === -1) return 1
  const [low, high] = [BOUNDS[i - 1] ?? 0, BOUNDS[i] ?? 0]
  return (i + (ms - low) / (high - low)) / BOUNDS.length
}
