import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createMetrics, type MetricRow } from '../../agent/tell/metrics.ts'
import { CHART, only, render } from './helm.ts'
import { PROMQL } from './tools.ts'

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
}

/** Labels that Prometheus and its Operator add to every series. */
const ADDED = ['namespace', 'service', 'pod', 'le']

describe('chart monitoring', () => {
  const metrics = createMetrics()
  const rows = new Map(metrics.rows.map(row => [row.name, row]))

  const alerts = () => {
    const { groups } = only(render({ 'prometheusRule.enabled': true }), 'PrometheusRule')['spec'] as {
      groups: { rules: Alert[] }[]
    }
    return groups.flatMap(({ rules }) => rules)
  }
  const dashboard = JSON.parse(readFileSync(join(CHART, 'dashboards/apisix-drain.json'), 'utf8')) as Dashboard

  /** The parts of an expression that must exist in the agent: metric names, labels, and values of labels. */
  function check(expr: string): void {
    const names = [...expr.matchAll(/apisix_drain_\w+/g)].map(([name]) => name)
    expect(names, expr).not.to.deep.equal([])
    const used = names.map(name => rowOf(name))
    for (const [index, row] of used.entries())
      expect(row, `no metric ${names[index]}`).not.to.equal(undefined)
    const known = new Set([...ADDED, ...used.flatMap(row => Object.keys(row?.labels ?? {}))])
    for (const label of labelsIn(expr)) expect(known, expr).to.include(label)
    for (const [, label = '', operator, text = ''] of expr.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)) {
      const allowed = used.map(row => row?.labels[label]).find(values => values !== undefined)
      // Values in words, such as "as in hook_answers_total", cannot be compared.
      if (!allowed?.includes(', ')) continue
      for (const value of operator === '=~' ? text.split('|') : [text])
        expect(allowed, expr).to.include(value)
    }
  }

  const rowOf = (name: string): MetricRow | undefined => {
    const histogram = rows.get(name.replace(/_(bucket|sum|count)$/, ''))
    return rows.get(name) ?? (histogram?.kind === 'histogram' ? histogram : undefined)
  }

  function labelsIn(expr: string): string[] {
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
    const matched = [...expr.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = '']) => label)
    return [...grouped, ...matched]
  }

  it('fails for metrics, labels and values that do not exist', () => {
    const good = 'rate(apisix_drain_admin_writes_total{namespace="x",result="failed"}[5m])'
    expect(() => check(good)).not.to.throw()
    const bad = [
      ['writes_total', 'write_total'],
      ['result=', 'outcome='],
      ['failed', 'lost']
    ] as const
    for (const [from, to] of bad) expect(() => check(good.replace(from, to)), to).to.throw()
  })

  it('writes valid Prometheus expressions', () => {
    const expressions = [...alerts(), ...dashboard.panels.flatMap(({ targets }) => targets)].map(
      // Grafana inserts numbers before Prometheus parses it.
      ({ expr }) => expr.replaceAll('$__range', '1h')
    )
    const parse = (lines: readonly string[]) => {
      const { status, stdout, error } = spawnSync(PROMQL, { input: lines.join('\n'), encoding: 'utf8' })
      expect({ status, error }).to.deep.equal({ status: 0, error: undefined })
      return stdout
    }
    expect(parse(expressions)).to.equal('')
    expect(parse(['sum(rate(x[5m])']), 'a wrong one').to.include('unclosed left parenthesis')
  })

  it('alerts on metrics, labels and values that the agent has', () => {
    expect(alerts()).to.have.length.above(8)
    for (const { expr } of alerts()) check(expr)
  })

  it('counts a rate only over counters and histograms', () => {
    const all = [...alerts(), ...dashboard.panels.flatMap(({ targets }) => targets)]
    for (const { expr } of all) {
      for (const [, , name = ''] of expr.matchAll(/\b(rate|increase)\((\w+)/g)) {
        expect(rowOf(name)?.kind, name).to.be.oneOf(['counter', 'histogram'])
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
      const series = [...expr.matchAll(/apisix_drain_\w+/g)].length
      const ours = [...expr.matchAll(/\{namespace="apisix",service="apisix-drain"/g)].length
      expect(ours, alert).to.equal(series)
    }
  })

  it('draws metrics, labels and values that the agent has', () => {
    const drawn = dashboard.panels.flatMap(({ targets }) => targets)
    expect(drawn).to.have.length.above(20)
    for (const { expr, legendFormat } of drawn) {
      check(expr)
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const grouped = /\bby \(/.test(expr)
        expect(grouped ? labelsIn(expr) : ADDED, `${expr} ${legendFormat}`).to.include(label)
      }
    }
  })

  it('places panels side by side, without overlap', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`)
    )
    expect(new Set(cells).size).to.equal(cells.length)
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).to.be.at.most(24)
  })

  it('renders the dashboard unchanged, for the sidecar', () => {
    const maps = render({ 'grafanaDashboard.enabled': true }).filter(({ kind }) => kind === 'ConfigMap')
    const map = maps.find(({ metadata }) => metadata.name === 'apisix-drain-grafana')
    expect(map?.metadata.labels).to.include({ grafana_dashboard: '1' })
    const data = map?.['data'] as Record<string, string>
    expect(JSON.parse(data['apisix-drain.json'] ?? '')).to.deep.equal(dashboard)
  })

  it('has every replica scraped', () => {
    const manifests = render({ 'serviceMonitor.enabled': true })
    const monitor = only(manifests, 'ServiceMonitor')
    const service = only(manifests, 'Service')
    expect(service.metadata.labels).to.include(
      (monitor['spec'] as { selector: { matchLabels: Record<string, string> } }).selector.matchLabels
    )
    expect(monitor)
      .to.have.nested.property('spec.endpoints[0]')
      .that.deep.includes({ port: 'http', path: '/metrics' })
  })
})
