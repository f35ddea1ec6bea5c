import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock } from '../../base/clock.ts'
import type { Metrics } from './metrics.ts'

/** Not exported: gauges with the names of counters, for which every scrape must list all sockets. */
const COSTLY = /^nodejs_active_/

let ofProcess: Registry | undefined

/** prom-client's own metrics of the process (`process_*`, `nodejs_*`). One for all agents of a process: it cannot be stopped. */
function processMetrics(): Registry {
  if (ofProcess) return ofProcess
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const { name } of registry.getMetricsAsArray())
    if (COSTLY.test(name)) registry.removeSingleMetric(name)
  return (ofProcess = registry)
}

/** Makes a value at most once a second, however often it is read: its readers may be strangers. */
export function onceASecond<T>({ now }: Pick<Clock, 'now'>, make: () => T): () => T {
  let made: { readonly at: number; readonly value: T } | undefined
  return () => (made && now() < made.at + 1000 ? made : (made = { value: make(), at: now() })).value
}

/** The text of `/metrics`: the agent's metrics and those of its process. `collect` updates gauges first. */
export function createExposition(
  { registry }: Pick<Metrics, 'registry'>,
  clock: Pick<Clock, 'now'>,
  collect: () => void
) {
  const process = processMetrics()
  return {
    contentType: registry.contentType,
    metrics: onceASecond(clock, async (): Promise<string> => {
      collect()
      return `${await registry.metrics()}\n${await process.metrics()}`
    })
  }
}
