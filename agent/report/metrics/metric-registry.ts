import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** The values of each label, as a list or in words. They are bounded: never a pod, a uid or an address. */
type Labels<L extends string> = Readonly<Record<L, readonly string[] | string>>
type Combination<L extends string> = Readonly<Record<L, string>>

/** Every combination of the values; none if the values of a label are given in words. */
export function combinations<L extends string>(labels: Labels<L>): readonly Combination<L>[] {
  let all: readonly Readonly<Record<string, string>>[] = [{}]
  for (const [label, values] of Object.entries<readonly string[] | string>(labels)) {
    if (typeof values === 'string') return []
    all = all.flatMap(one => values.map(value => ({ ...one, [label]: value })))
  }
  return all
}

/** One row of docs/metrics.md. */
interface MetricRow {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** The values of each label, in words. */
  readonly labels: Readonly<Record<string, string>>
}

const PREFIX = 'apisix_drain_'

/**
 * Makes metrics in a registry of its own, and keeps their rows for docs/metrics.md. A counter or histogram begins with 0 in the series of
 * `begin`: by default, in every combination of its labels.
 */
export function createMetricRegistry() {
  const registry = new Registry()
  const rows: MetricRow[] = []

  const counter = <L extends string = never>(
    name: string,
    help: string,
    labels = {} as Labels<L>,
    begin = combinations(labels)
  ) => {
    const made = new Counter<L>(describe('counter', name, help, labels))
    for (const one of begin) made.inc(one, 0)
    return made
  }
  const gauge = <L extends string = never>(name: string, help: string, labels = {} as Labels<L>) =>
    new Gauge<L>(describe('gauge', name, help, labels))
  const histogram = <L extends string = never>(
    buckets: readonly number[],
    name: string,
    help: string,
    labels = {} as Labels<L>,
    begin = combinations(labels)
  ) => {
    const made = new Histogram<L>({ ...describe('histogram', name, help, labels), buckets: [...buckets] })
    for (const one of begin) made.zero(one)
    return made
  }

  return { registry, rows: rows as readonly MetricRow[], counter, gauge, histogram }

  function describe<L extends string>(
    kind: MetricRow['kind'],
    name: string,
    help: string,
    labels: Labels<L>
  ) {
    const words = Object.entries<readonly string[] | string>(labels).map(([label, values]) => [
      label,
      typeof values === 'string' ? values : values.join(', ')
    ])
    rows.push({ name: `${PREFIX}${name}`, kind, help, labels: Object.fromEntries(words) })
    return {
      name: `${PREFIX}${name}`,
      help,
      labelNames: Object.keys(labels) as L[],
      registers: [registry]
    }
  }
}
