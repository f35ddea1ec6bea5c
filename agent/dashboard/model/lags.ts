import type { DrainLag } from '../../report/snapshot/drain-view.ts'
import type { HolderView, ArrivalView, Snapshot } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from './format.ts'
import type { Lane } from './lanes.ts'

/** A time that one pod took until `at`, on its way out or in. */
export type Sample = Pick<DrainLag, 'at' | 'ms'>

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

/** Columns for a chart: `at` in seconds since the epoch, the others in ms. */
export type Series = readonly [at: number[], p50: Value[], p99: Value[], max: Value[]]

type Value = number | null

const POINTS = 60

/** The samples of the last `rangeMs` before `now`. */
export const within = (samples: readonly Sample[], rangeMs: number, now: number): readonly Sample[] =>
  samples.filter(({ at }) => at > now - rangeMs)

/**
 * One point for every 60th part of the range that ends `now`, from the samples in that part. A part without samples is `null`, which
 * makes a gap in the line.
 */
export function seriesOf(samples: readonly Sample[], rangeMs: number, now: number): Series {
  const width = rangeMs / POINTS
  // The bounds of parts do not depend on `now`, so the points do not jump while time passes.
  const [first, last] = [Math.floor((now - rangeMs) / width), Math.floor(now / width)]
  const parts = Map.groupBy(samples, ({ at }) => Math.min(last, Math.floor(at / width)))
  const series: Series = [[], [], [], []]
  for (let part = first; part <= last; part++) {
    const found = quantiles((parts.get(part) ?? []).map(({ ms }) => ms))
    series[0].push(Math.min(now, (part + 0.5) * width) / 1000)
    series[1].push(found?.p50 ?? null)
    series[2].push(found?.p99 ?? null)
    series[3].push(found?.max ?? null)
  }
  return series
}

/** The times that pods took to arrive. */
export const arrivalSamples = (arrivals: readonly ArrivalView[]): readonly Sample[] =>
  arrivals.flatMap(({ routedAt, readyAt }) =>
    routedAt === null ? [] : [{ at: routedAt, ms: routedAt - readyAt }]
  )

/** The pods that are Ready and that some gateway does not route to yet, the oldest first. The agent gives one up after two minutes, or when it ends. */
export function arriving({
  at,
  arrivals,
  drains,
  past
}: Pick<Snapshot, 'at' | 'arrivals' | 'drains' | 'past'>) {
  const ended = new Set([...drains, ...past].map(({ uid }) => uid))
  return arrivals
    .filter(({ routedAt, readyAt, uid }) => routedAt === null && at - readyAt < 120_000 && !ended.has(uid))
    .toSorted((a, b) => a.readyAt - b.readyAt)
}

/**
 * The three figures of sync lag. `out`: from the decision of Kubernetes until every gateway had sealed the pod; `in`: from Ready until every
 * gateway routed to it, both over the pods of the last `rangeMs`. `owners`: the holders whose owners are behind now, the oldest first.
 */
export interface LagFigures {
  readonly out: Quantiles | undefined
  readonly in: Quantiles | undefined
  readonly owners: readonly HolderView[]
}

export function lagFigures(
  { lags, arrivals, holders }: Pick<Snapshot, 'lags' | 'arrivals' | 'holders'>,
  rangeMs: number,
  now: number
): LagFigures {
  const of = (samples: Parameters<typeof within>[0]) =>
    quantiles(within(samples, rangeMs, now).map(({ ms }) => ms))
  return {
    out: of(lags),
    in: of(arrivalSamples(arrivals)),
    owners: holders
      .filter(({ behind }) => behind !== null && behind.owner !== null)
      .toSorted((a, b) => (a.behind?.owner ?? 0) - (b.behind?.owner ?? 0))
  }
}

/** `600 pods in 1 h · p99 98 ms · longest 121 ms`; without p99 below 100 pods: it would be the longest. */
export const figureNote = ({ n, p99, max }: Quantiles, range: string): string =>
  [
    `${count(n, 'pod')} in ${range}`,
    ...(n < 100 ? [] : [`p99 ${formatMs(p99)}`]),
    `longest ${formatMs(max)}`
  ].join(' · ')

/** How long each gateway took to seal a pod (or to confirm without a seal), by name, over all these lanes. */
export const gatewayLags = (lanes: readonly Lane[]): ReadonlyMap<string, Quantiles> =>
  byName(
    lanes.flatMap(({ drain, start }) =>
      drain.gateways.flatMap(({ name, sealedAt, at }) => {
        const to = sealedAt ?? at
        return to === undefined ? [] : [{ name, ms: Math.max(0, to - start) }]
      })
    )
  )

/** How long each gateway took to route to a pod that became Ready, by name. */
export const gatewayArrivals = (arrivals: readonly ArrivalView[]): ReadonlyMap<string, Quantiles> =>
  byName(
    arrivals.flatMap(({ gateways, readyAt }) =>
      gateways.flatMap(({ name, at }) => (at === null ? [] : [{ name, ms: Math.max(0, at - readyAt) }]))
    )
  )

function byName(
  samples: readonly { readonly name: string; readonly ms: number }[]
): ReadonlyMap<string, Quantiles> {
  return new Map(
    [...Map.groupBy(samples, ({ name }) => name)].flatMap(([name, mine]) => {
      const found = quantiles(mine.map(({ ms }) => ms))
      return found ? [[name, found] as const] : []
    })
  )
}
