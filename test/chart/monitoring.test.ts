import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { play, TARGET } from './alerts/play.ts'
import { recordRollout, type Recorded } from './alerts/record.ts'
import { CHART, only, render } from './helm.ts'
import { GRAFANA, PROMQL } from './tools.ts'

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] }
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
}

interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

const SELECTOR = /\b((?:apisix_drain|process|nodejs)_\w+)(?:\{([^}]*)\})?/g
const MATCHER = /(\w+)(=~|!=|=)"([^"]*)"/g

type Matcher = readonly [label: string, operator: string, value: string]

/** Returns one list of matchers for each alternative, because `a=~"x|y"` must find both an x and a y. */
const eachAlternative = (matchers: string): readonly (readonly Matcher[])[] =>
  [...matchers.matchAll(MATCHER)].reduce<readonly (readonly Matcher[])[]>(
    (all, [, label = '', operator = '', text = '']) =>
      all.flatMap(one =>
        (operator === '=~' ? text.split('|') : [text]).map(value => [
          ...one,
          [label, operator === '!=' ? '!=' : '=', value] as const
        ])
      ),
    [[]]
  )

/** Whether the labels match. Grafana replaces a variable such as `$gateway` by an existing value, so a variable matches any value. */
const fits = (labels: Readonly<Record<string, string>>, [label, operator, value]: Matcher): boolean =>
  label in labels && (value.startsWith('$') || (labels[label] === value) === (operator === '='))

const labelsOf = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [label, value])
  )

describe('chart monitoring', () => {
  let rollout: Recorded
  let series: readonly Series[]
  let kinds: ReadonlyMap<string, string>
  before(async () => {
    rollout = await recordRollout()
    const { text } = rollout
    kinds = new Map(
      [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind])
    )
    series = [...text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)].map(([, name = '', labels = '']) => ({
      name,
      labels: { ...TARGET, ...labelsOf(labels) }
    }))
  })

  const alerts = () => {
    const { groups } = only(render({ 'monitoring.prometheusRule.enabled': true }), 'PrometheusRule')[
      'spec'
    ] as {
      groups: { rules: Alert[] }[]
    }
    return groups.flatMap(({ rules }) => rules)
  }
  const text = readFileSync(join(CHART, 'dashboards/apisix-drain.json'), 'utf8')
  const dashboard = JSON.parse(text) as Dashboard

  /** Expects that every selector of the expression finds a series of a real agent, and that the selector's labels exist there. */
  function check(expr: string): void {
    const selectors = [...expr.matchAll(SELECTOR)]
    expect(selectors, expr).to.have.length.above(0)
    for (const [selector, name, matchers = ''] of selectors) {
      const ofName = series.filter(one => one.name === name)
      for (const wanted of eachAlternative(matchers)) {
        const found = ofName.some(({ labels }) => wanted.every(matcher => fits(labels, matcher)))
        expect(found, `${selector} in ${expr}`).to.equal(true)
      }
    }
    const names = new Set(selectors.map(([, name]) => name))
    const known = new Set(
      series.filter(({ name }) => names.has(name)).flatMap(({ labels }) => Object.keys(labels))
    )
    for (const label of groupedBy(expr)) expect(known, expr).to.include(label)
  }

  const groupedBy = (expr: string): string[] =>
    [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))

  it('fails for metrics, labels and values that do not exist', () => {
    const good =
      'sum by (result) (rate(apisix_drain_admin_writes_total{service="apisix-drain",result="failed"}[5m]))'
    expect(() => check(good)).not.to.throw()
    const bad = [
      ['writes_total', 'write_total'],
      ['result=', 'outcome='],
      ['(result)', '(outcome)'],
      ['failed', 'lost'],
      ['"failed"', '"failed",operation="get"']
    ] as const
    for (const [from, to] of bad) expect(() => check(good.replace(from, to)), to).to.throw()
  })

  /** Runs a program that prints what is wrong with its input. */
  const complaints = (program: string, input: string) => {
    const { status, stdout, error } = spawnSync(program, { input, encoding: 'utf8' })
    expect({ status, error }).to.deep.equal({ status: 0, error: undefined })
    return stdout
  }

  it('writes valid Prometheus expressions', () => {
    const expressions = [...alerts(), ...dashboard.panels.flatMap(({ targets }) => targets)].map(
      // Grafana replaces `$__range` before Prometheus parses the expression.
      ({ expr }) => expr.replaceAll('$__range', '1h')
    )
    expect(complaints(PROMQL, expressions.join('\n'))).to.equal('')
    expect(complaints(PROMQL, 'sum(rate(x[5m])'), 'a wrong one').to.include('unclosed left parenthesis')
  })

  it('draws a dashboard that is valid by the schema of Grafana (E8)', () => {
    expect(complaints(GRAFANA, text)).to.equal('')
    for (const [right, wrong] of [
      ['"colorMode"', '"colourMode"'],
      ['"h": 4', '"h": "4"']
    ] as const)
      expect(complaints(GRAFANA, text.replace(right, wrong)), wrong).to.match(/^panels\[0\]\./)
  })

  it('alerts on metrics, labels and values that the agent has', () => {
    expect(alerts()).to.have.length.above(8)
    for (const { expr } of alerts()) check(expr)
  })

  it('counts a rate only over counters and histograms', () => {
    const all = [...alerts(), ...dashboard.panels.flatMap(({ targets }) => targets)]
    for (const { expr } of all) {
      for (const [, , name = ''] of expr.matchAll(/\b(rate|increase)\((\w+)/g)) {
        const kind = kinds.get(name) ?? kinds.get(name.replace(/_(bucket|sum|count)$/, ''))
        expect(kind, name).to.be.oneOf(['counter', 'histogram'])
      }
    }
  })

  it('gives every alert a severity, a summary and a remedy', () => {
    for (const { alert, labels, annotations } of alerts()) {
      expect(labels['severity'], alert).to.be.oneOf(['critical', 'warning'])
      expect(annotations['summary'], alert).to.match(/^[A-Z].{10,}[^.]$/)
      expect(annotations['description'], alert).to.match(/^[A-Z].{10,}\.$/)
    }
  })

  it('alerts on this release only', () => {
    for (const { alert, expr } of alerts()) {
      const selectors = [...expr.matchAll(SELECTOR)].length
      const ours = [...expr.matchAll(/\{namespace="apisix",service="apisix-drain"/g)].length
      expect(ours, alert).to.equal(selectors)
    }
  })

  it('draws metrics, labels and values that the agent has', () => {
    const drawn = dashboard.panels.flatMap(({ targets }) => targets)
    expect(drawn).to.have.length.above(20)
    for (const { expr, legendFormat } of drawn) {
      check(expr)
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const grouped = /\bby \(/.test(expr)
        expect(grouped ? groupedBy(expr) : Object.keys(TARGET), `${expr} ${legendFormat}`).to.include(label)
      }
    }
  })

  it('draws numbers in the first rollout of an agent, where a rate of a new series would be NaN', () => {
    const drawn = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    const quantiles = drawn.filter(expr => /^histogram_quantile.*_(hook|step|lag)_/.test(expr))
    expect(quantiles).to.have.length.above(4)
    const values = { $namespace: TARGET.namespace, $service: TARGET.service, $gateway: '.*', $__range: '2m' }
    const looks = quantiles.map(expr => ({
      at: '3m',
      // A comparison with NaN is false, so a NaN fails the test.
      expr: `count(${Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), expr)} >= 0) > bool 0`,
      samples: [{ labels: {}, value: 1 }]
    }))
    const { ok, text } = play({ rollout, looks })
    expect(ok, text).to.equal(true)
  })

  it('answers in its first row: proved, the three lags, and workloads without a safe hook (E8)', () => {
    const first = dashboard.panels.filter(({ gridPos }) => gridPos.y === 0)
    const drawn = first.map(({ targets }) => /apisix_drain_(\w+?)(_bucket)?\{/.exec(targets[0]!.expr)?.[1])
    expect(drawn).to.deep.equal([
      'hook_answers_total',
      'sync_lag_seconds',
      'sync_lag_seconds',
      'owner_behind_seconds',
      'workloads_without_hook',
      'requests_after_ack_total'
    ])
  })

  it('offers namespace, release and gateway, and draws one release only', () => {
    expect(dashboard.templating.list.map(({ name }) => name)).to.deep.equal([
      'datasource',
      'namespace',
      'service',
      'gateway'
    ])
    for (const { expr } of dashboard.panels.flatMap(({ targets }) => targets))
      for (const [selector] of expr.matchAll(SELECTOR)) {
        expect(selector).to.include('{namespace="$namespace",service="$service"')
        if (/ by \([^)]*gateway/.test(expr)) expect(selector).to.include('gateway=~"$gateway"')
      }
    for (const { definition = '' } of dashboard.templating.list)
      for (const [, metric = ''] of definition.matchAll(/label_values\((\w+)/g))
        expect(
          series.some(({ name }) => name === metric),
          metric
        ).to.equal(true)
  })

  it('places panels side by side, without overlap', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`)
    )
    expect(new Set(cells).size).to.equal(cells.length)
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).to.be.at.most(24)
  })

  it('renders the dashboard unchanged, for the sidecar', () => {
    const maps = render({ 'monitoring.grafanaDashboard.enabled': true }).filter(
      ({ kind }) => kind === 'ConfigMap'
    )
    const map = maps.find(({ metadata }) => metadata.name === 'apisix-drain-grafana')
    expect(map?.metadata.labels).to.include({ grafana_dashboard: '1' })
    const data = map?.['data'] as Record<string, string>
    expect(JSON.parse(data['apisix-drain.json'] ?? '')).to.deep.equal(dashboard)
  })

  it('has every replica scraped', () => {
    const manifests = render({ 'monitoring.serviceMonitor.enabled': true })
    const monitor = only(manifests, 'ServiceMonitor')
    const service = only(manifests, 'Service')
    expect(service.metadata.labels).to.include(
      (monitor['spec'] as { selector: { matchLabels: Record<string, string> } }).selector.matchLabels
    )
    expect(monitor)
      .to.have.nested.property('spec.endpoints[0]')
      .that.deep.includes({ port: 'page', path: '/metrics' })
    const shared = only(
      render({ 'monitoring.serviceMonitor.enabled': true, 'config.serve.pagePort': null }),
      'ServiceMonitor'
    )
    expect(shared).to.have.nested.property('spec.endpoints[0].port', 'http')
  })
})
