import { expect } from 'chai'
import { ERRORS } from '../../../../agent/base/errors.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { createExposition } from '../../../../agent/report/metrics/round-metrics.ts'
import { createMetrics, type Metrics } from '../../../../agent/report/metrics/metrics.ts'

describe('metrics', () => {
  let metrics: Metrics
  beforeEach(() => (metrics = createMetrics()))

  it('are all in the registry, and each is described', async () => {
    const registered = await metrics.registry.getMetricsAsJSON()
    expect(registered.map(metric => metric.name)).to.have.members(metrics.rows.map(row => row.name))
    for (const { name, help } of metrics.rows) expect(help, name).to.match(/\.$/)
  })

  it('are named by part, thing and unit', () => {
    for (const { name, kind } of metrics.rows) {
      expect(name).to.match(/^apisix_drain_[a-z]+(_[a-z]+)+$/)
      if (kind === 'counter') expect(name).to.match(/_total$/)
      else expect(name).not.to.match(/_total$/)
      if (kind === 'histogram') expect(name).to.match(/_seconds$/)
    }
  })

  it('never carry a pod, a uid or an address as a label', () => {
    for (const { name, labels } of metrics.rows) {
      for (const label of Object.keys(labels))
        expect(label, name).not.to.match(/pod|uid|ip|address|name|holder/)
    }
  })

  it('do not repeat the name of the program (D15)', () => {
    for (const { name } of metrics.rows)
      expect(name.slice('apisix_drain_'.length), name).not.to.match(/drain|process/)
  })

  const begun = async ({ name, kind }: Metrics['rows'][number]) => {
    const { values } = await metrics.registry.getSingleMetric(name)!.get()
    const counted = values.filter(
      value => kind === 'counter' || (value as { metricName?: string }).metricName === `${name}_count`
    )
    for (const { value } of counted) expect(value, name).to.equal(0)
    return counted.map(({ labels }) => labels as Readonly<Record<string, string>>)
  }

  it('are counters that begin with 0 in every series, so that Prometheus sees the first increase (D5)', async () => {
    metrics.gatewayNames.keep(['apisix-0'])
    // The agent shows a gateway's own count unchanged. It begins at 0 when the gateway starts, not when the agent starts.
    const foreign = 'apisix_drain_plugin_requests_total'
    for (const row of metrics.rows.filter(({ kind, name }) => kind === 'counter' && name !== foreign)) {
      const series = await begun(row)
      const one = (label: string, words: string) =>
        label === 'gateway' ? ['apisix-0'] : label === 'code' ? Object.keys(ERRORS) : words.split(', ')
      for (const [label, words] of Object.entries(row.labels)) {
        const values = series.map(labels => labels[label])
        expect(new Set(values), `${row.name} ${label}`).to.deep.equal(new Set(one(label, words)))
      }
    }
  })

  it('are histograms that begin with 0 in the usual series, and are small together', async () => {
    metrics.gatewayNames.keep(['apisix-0', 'apisix-1', 'apisix-2'])
    const usual = new Map<string, number>()
    for (const row of metrics.rows.filter(({ kind }) => kind === 'histogram'))
      usual.set(row.name, (await begun(row)).length)
    expect(Math.min(...usual.values())).to.be.above(0)
    expect(usual.get('apisix_drain_gateway_lag_seconds')).to.equal(6)
    expect(usual.get('apisix_drain_hook_duration_seconds')).to.equal(2)
    const text = await createExposition(metrics, manualClock(), () => {}).metrics()
    expect(Buffer.byteLength(text)).to.be.below(90_000)
  })

  it('have no series of an answer that cannot be', async () => {
    const text = await metrics.registry.metrics()
    expect(text).to.include('apisix_drain_hook_answers_total{result="unproved",evidence="none"} 0')
    expect(text).not.to.include('result="stays",evidence="barrier"')
  })

  it('can be scraped before and after the first drain', async () => {
    expect(await metrics.registry.metrics()).not.to.match(/NaN|-\d/)
    metrics.hookAnswers.inc({ result: 'drained', evidence: 'barrier' })
    metrics.hookDuration.observe({ result: 'drained' }, 0.004)
    const text = await metrics.registry.metrics()
    expect(text).to.include('apisix_drain_hook_answers_total{result="drained",evidence="barrier"} 1')
    expect(text).to.include('apisix_drain_hook_duration_seconds_bucket{le="0.005",result="drained"} 1')
    expect(text).not.to.match(/NaN|-\d/)
  })

  it('two sets are independent', async () => {
    const other = createMetrics()
    metrics.hookAbandoned.inc()
    expect(await other.registry.metrics()).to.include('apisix_drain_hook_abandoned_total 0')
  })
})
