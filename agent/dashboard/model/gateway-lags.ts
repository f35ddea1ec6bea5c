import type { ArrivalView } from '../../report/snapshot/snapshot.ts'
import type { Lane } from './lanes.ts'
import { quantiles, type Quantiles } from './lag-series.ts'

interface Sample {
  readonly name: string
  readonly ms: number
}

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

function byName(samples: readonly Sample[]): ReadonlyMap<string, Quantiles> {
  return new Map(
    [...Map.groupBy(samples, ({ name }) => name)].flatMap(([name, mine]) => {
      const found = quantiles(mine.map(({ ms }) => ms))
      return found ? [[name, found] as const] : []
    })
  )
}
