import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Ack, Drain } from '../../rules/drain/drain.ts'
import type { Kept } from '../../rules/plan/plan.ts'

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

/** The keys of a record that has every member of a union, and no other. */
export const keysOf = <K extends string>(values: Readonly<Record<K, unknown>>) => Object.keys(values) as K[]

/** What proves a drain, or that nothing does. */
export const EVIDENCE = keysOf({ barrier: 1, observed: 1, none: 1 } satisfies Record<Ack['evidence'], 1>)
/** The evidence that each result of a hook can have. */
export const ANSWERS: Readonly<Record<Ack['result'], readonly Ack['evidence'][]>> = {
  drained: EVIDENCE.filter(evidence => evidence !== 'none'),
  unproved: ['none'],
  stays: ['none']
}
/** The phases of a drain. */
export const PHASES = keysOf({
  draining: 1,
  proven: 1,
  expired: 1,
  undone: 1,
  gone: 1
} satisfies Record<Drain['phase'], unknown>)
/** Why the node of an ending pod stays listed. */
export const KEPT_REASONS = keysOf({
  'last-node': 1,
  discovery: 1,
  standalone: 1,
  owner: 1,
  'fixed-address': 1,
  'dry-run': 1,
  'address-unknown': 1
} satisfies Record<Kept['why'], 1>)
/** The decisions of the plugin about requests. */
export const DECISIONS = ['moved', 'succeeded', 'refused', 'bypassed', 'late', 'error'] as const
export const RESULTS = keysOf(ANSWERS)
export const DIRECTIONS = ['removal', 'arrival'] as const
export const WATCHES = ['pods', 'endpointslices', 'gateways'] as const
/** The calls of each API of APISIX that are measured. */
export const CALLS_OF = {
  admin: ['list', 'get', 'patch', 'put', 'standalone'],
  control: ['read'],
  barrier: ['put', 'remove', 'inflight', 'state', 'entries']
} as const
/** The label values of a first rollout in most clusters: the histogram series that begin with 0. */
export const USUAL_RESULTS = ['drained', 'unproved'] as const satisfies readonly Ack['result'][]

/** Why a routed workload has no safe hook. */
export const UNSAFE = ['without', 'bare', 'early'] as const

/** For how many scrapes the series of a gateway that is gone stay: every reader of `/metrics` then sees their last values. */
export const LAST_SCRAPES = 10

/**
 * The values of the label `gateway`. Series go with their gateway, because each rollout of gateways brings new names. `begin` and `forget`
 * are called when the series of a name begin, and when they end.
 */
export function createGatewayNames(begin: (name: string) => void, forget: (name: string) => void) {
  /** By name: the scrapes that are left to it. */
  const named = new Map<string, number>()
  const labelOf = (name: string): string => {
    if (!named.has(name)) begin(name)
    named.set(name, LAST_SCRAPES)
    return name
  }
  return {
    /** Called at each scrape with the gateways that exist. */
    keep(present: readonly string[]) {
      for (const [name, left] of named) {
        named.set(name, left - 1)
        if (left > 0 || present.includes(name)) continue
        named.delete(name)
        forget(name)
      }
      present.forEach(labelOf)
    },
    /** The name itself, which has series from now on. */
    labelOf
  }
}
