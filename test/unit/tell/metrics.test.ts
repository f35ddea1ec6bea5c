import { expect } from 'chai'
import { createMetrics, type Metrics } from '../../../agent/tell/metrics.ts'

describe('metrics', () => {
  let metrics: Metrics
  beforeEach(() => (metrics = createMetrics()))
  afterEach(() => metrics.close())

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

  it('can be scraped before and after the first drain', async () => {
    expect(await metrics.registry.metrics()).to.include(
      'apisix_drain_process_event_loop_lag_seconds{quantile="0.99"}'
    )
    metrics.hookAnswers.inc({ result: 'drained', evidence: 'barrier' })
    metrics.hookDuration.observe({ result: 'drained' }, 0.004)
    const text = await metrics.registry.metrics()
    expect(text).to.include('apisix_drain_hook_answers_total{result="drained",evidence="barrier"} 1')
    expect(text).to.include('apisix_drain_hook_duration_seconds_bucket{le="0.005",result="drained"} 1')
    expect(text).not.to.match(/NaN|-\d/)
  })

  it('two sets are independent', async () => {
    const other = createMetrics()
    other.close()
    metrics.rounds.inc()
    expect(await other.registry.metrics()).to.include('apisix_drain_loop_rounds_total 0')
  })
})
