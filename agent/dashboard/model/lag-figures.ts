import type { HolderView } from '../../report/snapshot/holder-view.ts'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { arrivalSamples } from './arrival-rows.ts'
import { count, formatMs } from './format.ts'
import { quantiles, within, type Quantiles } from './lag-series.ts'

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

/** `60 pods in 1 h · p99 121 ms · longest 121 ms`: below 100 pods the longest is all that p99 could be. */
export const figureNote = ({ n, p99, max }: Quantiles, range: string): string =>
  [
    `${count(n, 'pod')} in ${range}`,
    ...(n < 100 ? [] : [`p99 ${formatMs(p99)}`]),
    `longest ${formatMs(max)}`
  ].join(' · ')
