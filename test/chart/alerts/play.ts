import { stringify } from 'yaml'
import { promtool, type Said } from './promtool.ts'
import { STEP_S, type Recorded } from './record.ts'

/** The samples that Prometheus must return for an expression at a time. */
export interface Look {
  readonly at: string
  readonly expr: string
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]
}

export interface Play {
  readonly rollout: Recorded
  /** The `spec` of a PrometheusRule. */
  readonly rules?: object
  /** Series that differ from those of the rollout, as the agent writes them; `name{*}` for one whose labels vary. */
  readonly differs?: Readonly<Record<string, string>>
  readonly looks: readonly Look[]
}

/** The labels that Prometheus and its Operator add to every series. */
export const TARGET = { namespace: 'apisix', service: 'apisix-drain', pod: 'apisix-drain-0' }

const written = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',')

/**
 * Runs `promtool test rules` on the series of a real agent, and returns its result.
 *
 * @throws Error if the real agent has no series with a name in `differs`, because such a test would prove nothing
 */
export function play({ rollout, rules = { groups: [] }, differs = {}, looks }: Play): Said {
  const series: Record<string, string> = { ...rollout.series }
  for (const [name, values] of Object.entries(differs)) {
    const isIt = (key: string) => (name.endsWith('{*}') ? key.startsWith(name.slice(0, -2)) : key === name)
    const [key, ...more] = Object.keys(series).filter(isIt)
    if (key === undefined || more.length > 0) throw new Error(`a real agent has no series ${name}`)
    series[key] = values
  }
  const expressions = JSON.stringify([rules, looks])
  const used = Object.entries(series).filter(([key]) => expressions.includes(key.split('{')[0] ?? key))
  const target = written(TARGET)
  return promtool(['test', 'rules', 'tests.yaml'], {
    'rules.yaml': stringify(rules),
    'tests.yaml': stringify({
      rule_files: ['rules.yaml'],
      evaluation_interval: `${STEP_S}s`,
      tests: [
        {
          interval: `${STEP_S}s`,
          input_series: used.map(([key, values]) => ({
            series: key.includes('{') ? key.replace('{', `{${target},`) : `${key}{${target}}`,
            values
          })),
          promql_expr_test: looks.map(({ at, expr, samples }) => ({
            expr,
            eval_time: at,
            exp_samples: samples.map(({ labels, value }) => ({ labels: `{${written(labels)}}`, value }))
          }))
        }
      ]
    })
  })
}
