/** Names of 0.1, which only this release still serves, and the names that replace them. */
export const RENAMED = {
  apisix_drain_drain_active: 'apisix_drain_pods_ending',
  apisix_drain_drain_ended_total: 'apisix_drain_pods_ended_total',
  apisix_drain_drain_phase_duration_seconds: 'apisix_drain_step_duration_seconds',
  apisix_drain_process_resident_memory_bytes: 'process_resident_memory_bytes'
} as const

/** The quantiles of 0.1 and the gauges that replace them. */
export const LAG = {
  name: 'apisix_drain_process_event_loop_lag_seconds',
  quantiles: {
    '0.5': 'nodejs_eventloop_lag_p50_seconds',
    '0.99': 'nodejs_eventloop_lag_p99_seconds',
    '1': 'nodejs_eventloop_lag_max_seconds'
  }
} as const

/** In seconds. The figure of 0.1 did not include the interval of the measuring timer; that of prom-client does. */
const INTERVAL = 0.01

const deprecated = (name: string, by: string) => `# HELP ${name} Deprecated: use ${by}.`

/** Adds the old names to the text of `/metrics`, with the same values. */
export function withOldNames(text: string): string {
  const families = new Map(text.split(/\n\n|\n(?=# HELP )/).map(family => [family.split(' ', 3)[2], family]))
  const renamed = Object.entries(RENAMED).flatMap(([old, name]) => {
    const family = families.get(name)
    return family === undefined
      ? []
      : [`${deprecated(old, name)}\n${family.slice(family.indexOf('\n') + 1).replaceAll(name, old)}`]
  })
  const lag = Object.entries(LAG.quantiles).flatMap(([quantile, name]) => {
    const value = /^[a-z]\S* (\S+)$/m.exec(families.get(name) ?? '')?.[1]
    return value === undefined
      ? []
      : [`${LAG.name}{quantile="${quantile}"} ${Math.max(0, Number(value) - INTERVAL || 0)}`]
  })
  // Prometheus does not allow a gauge with quantiles, so it is served as a summary.
  const summary = [
    deprecated(LAG.name, Object.values(LAG.quantiles).join(', ')),
    `# TYPE ${LAG.name} summary`,
    ...lag
  ]
  return `${[text.trimEnd(), ...renamed, ...(lag.length > 0 ? [summary.join('\n')] : [])].join('\n\n')}\n`
}
