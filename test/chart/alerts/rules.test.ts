import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { anchorsOf } from '../../../scripts/docs/links.ts'
import { only, render } from '../helm.ts'
import { BAD_CASES, GOOD_CASES } from './bad-cases.ts'
import { promtool } from './promtool.ts'
import { recordRollout, STEP_S, STEPS, type Recorded } from './record.ts'

interface Rule {
  readonly alert: string
  readonly annotations: Readonly<Record<string, string>>
}

/** The labels that Prometheus and its Operator add. */
const TARGET = 'namespace="apisix",service="apisix-drain",pod="apisix-drain-0"'
/** Labels by which an alert tells what it is about. */
const ABOUT = 'alertname, api, error, gateway, kind, namespace, result, service'
const FIRING = `count by (${ABOUT}) (ALERTS{alertstate="firing"})`
const MINUTES = (STEPS * STEP_S) / 60

describe('alerts', () => {
  let recorded: Recorded
  before(async () => (recorded = await recordRollout()))

  const spec = (values = {}) =>
    only(render({ 'prometheusRule.enabled': true, ...values }), 'PrometheusRule')['spec'] as {
      groups: readonly { rules: readonly Rule[] }[]
    }
  const rules = () => spec().groups.flatMap(group => group.rules)

  /** The series of the rollout with those that differ, for promtool. */
  function input(differs: Readonly<Record<string, string>>) {
    const series = { ...recorded.series }
    for (const [name, values] of Object.entries(differs)) {
      // The labels of the agent's version are its own.
      const known = Object.keys(series).filter(
        key => key === name || (name.endsWith('{*}') && key.startsWith(name.slice(0, -2)))
      )
      expect(known, `series of a real agent: ${name}`).to.have.length(1)
      series[known[0] ?? ''] = values
    }
    const used = Object.entries(series).filter(
      ([key]) => key.startsWith('apisix_drain_') && !key.includes('_bucket')
    )
    return used.map(([key, values]) => ({
      series: key.includes('{') ? key.replace('{', `{${TARGET},`) : `${key}{${TARGET}}`,
      values
    }))
  }

  interface Look {
    readonly at: string
    readonly fires: readonly Readonly<Record<string, string>>[]
  }

  function run(
    tests: readonly { readonly differs: Readonly<Record<string, string>>; readonly looks: readonly Look[] }[]
  ) {
    const sample = (labels: Readonly<Record<string, string>>) => ({
      labels: `{${Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`)}}`,
      value: 1
    })
    return promtool(['test', 'rules', 'tests.yaml'], {
      'rules.yaml': stringify(spec()),
      'tests.yaml': stringify({
        rule_files: ['rules.yaml'],
        evaluation_interval: `${STEP_S}s`,
        tests: tests.map(({ differs, looks }) => ({
          interval: `${STEP_S}s`,
          input_series: input(differs),
          promql_expr_test: looks.map(({ at, fires }) => ({
            expr: FIRING,
            eval_time: at,
            exp_samples: fires.map(sample)
          }))
        }))
      })
    })
  }

  it('are rules that promtool accepts', () => {
    const { ok, text } = promtool(['check', 'rules', '--lint=all', '--lint-fatal', 'rules.yaml'], {
      'rules.yaml': stringify(spec())
    })
    expect(ok, text).to.equal(true)
    expect(text).to.include(`${rules().length} rules found`)
  })

  it('have a bad case each', () => {
    expect(Object.keys(BAD_CASES)).to.have.members(rules().map(({ alert }) => alert))
  })

  for (const [alert, { series, at, labels }] of Object.entries(BAD_CASES)) {
    it(`${alert} fires in its bad case, alone, and not before`, () => {
      const { ok, text } = run([
        {
          differs: series,
          looks: [
            { at: '4m45s', fires: [] },
            { at, fires: [{ alertname: alert, ...labels }] }
          ]
        }
      ])
      expect(ok, text).to.equal(true)
    })
  }

  for (const [what, differs] of Object.entries(GOOD_CASES)) {
    it(`are silent in ${what}`, () => {
      const looks = Array.from({ length: MINUTES * 2 }, (_, i) => ({ at: `${i * 30}s`, fires: [] }))
      const { ok, text } = run([{ differs, looks }])
      expect(ok, text).to.equal(true)
    })
  }

  it('are tested by a tool that notices an alert', () => {
    const differs = BAD_CASES['ApisixDrainLoopStuck']?.series ?? {}
    expect(run([{ differs, looks: [{ at: '7m', fires: [] }] }]).ok).to.equal(false)
  })

  it('lead to a section of docs/troubleshooting.md', () => {
    const page = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8')
    const anchors = anchorsOf(page)
    for (const { alert, annotations } of rules()) {
      const [file, anchor = ''] = (annotations['runbook_url'] ?? '').split('#')
      expect(file, alert).to.equal('docs/troubleshooting.md')
      expect(anchors, alert).to.include(anchor)
    }
    const [{ annotations }] = spec({ 'prometheusRule.docs': 'https://git.example/docs' }).groups[0]
      ?.rules as [Rule]
    expect(annotations['runbook_url']).to.equal('https://git.example/docs/troubleshooting.md#apisixdraindown')
  })

  it('are made from metrics that promtool accepts, as a real agent serves them', () => {
    const { ok, text } = promtool(['check', 'metrics'], {}, recorded.text)
    expect(ok, text).to.equal(true)
    expect(text).to.equal('')
  })
})
