import type { Lane } from './lanes.ts'
import { quantiles, type Quantiles } from './lag-series.ts'

/** How long each gateway took to confirm, by name, over the lanes that are kept: who is it that all others wait for? */
export function gatewayLags(lanes: readonly Lane[]): ReadonlyMap<string, Quantiles> {
  const confirmed = lanes.flatMap(({ drain, start }) =>
    drain.gateways.flatMap(({ name, at }) => (at ? [{ name, ms: Math.max(0, at - start) }] : []))
  )
  const byName = Map.groupBy(confirmed, ({ name }) => name)
  return new Map(
    [...byName].flatMap(([name, samples]) => {
      const found = quantiles(samples.map(({ ms }) => ms))
      return found ? [[name, found] as const] : []
    })
  )
}
