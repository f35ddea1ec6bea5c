import { expect } from 'chai'
import { ERRORS } from '../../../agent/base/errors.ts'
import { createMetrics, type Metrics } from '../../../agent/tell/metrics.ts'

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

  it('do not repeat the name of the program', () => {
    for (const { name } of metrics.rows)
      expect(name.slice('apisix_drain_'.length), name).not.to.match(/drain|process/)
  })

  it('begin with 0 in every series, so that Prometheus sees the first increase', async () => {
    for (const { name, kind, labels } of metrics.rows.filter(({ kind }) => kind !== 'gauge')) {
      const { values } = await metrics.registry.getSingleMetric(name)!.get()
      const counted = values.filter(value => !('metricName' in value) || value.metricName === `${name}_count`)
      for (const { value } of counted) expect(value, name).to.equal(0)
      const one = (label: string, words: string) =>
        label === 'gateway' ? ['other'] : label === 'code' ? Object.keys(ERRORS) : words.split(', ')
      for (const [label, words] of Object.entries(labels)) {
        const began = counted.map(value => (value.labels as Record<string, string>)[label])
        expect(new Set(began), `${kind} ${name} ${label}`).to.deep.equal(new Set(one(label, words)))
      }
    }
  })

  it('have no series of an answer that cannot be', async () => {
    const text = await metrics.registry.metrics()
    expect(text).to.include('apisix_drain_hook_answers_total{result="deadline",evidence="none"} 0')
    expect(text).not.to.include('result="skipped",evidence="barrier"')
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
    metrics.rounds.inc()
    expect(await other.registry.metrics()).to.include('apisix_drain_loop_rounds_total 0')
  })
})
