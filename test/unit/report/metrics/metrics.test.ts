import { expect } from 'chai'
import { ERRORS, CodedError } from '../../../../agent/base/errors.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { createExposition, meter, metered, seldom } from '../../../../agent/report/metrics/round-metrics.ts'
import { createMetrics, type Metrics } from '../../../../agent/report/metrics/metrics.ts'
import { createGatewayNames, LAST_SCRAPES } from '../../../../agent/report/metrics/metric-registry.ts'
import type { Drain, Waiting } from '../../../../agent/rules/drain/drain.ts'
import { createStatuses } from '../../../../agent/round/gather/drain-status.ts'
import { waitingDrain } from '../../../build/snapshot.ts'

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
})

describe('the text of /metrics', () => {
  const metrics = createMetrics()
  const clock = manualClock()
  let made = 0
  const { metrics: read, contentType } = createExposition(metrics, clock, () => {
    made += 1
    metrics.drains.set({ phase: 'draining' }, 3)
  })

  it('has the metrics of the agent and of its process, each once (D15)', async () => {
    const text = await read()
    expect(contentType).to.include('text/plain')
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    expect(new Set(names).size).to.equal(names.length)
    expect(text).to.include('apisix_drain_pods_ending{phase="draining"} 3\n')
    expect(names).to.include.members([
      'apisix_drain_hook_waiting',
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_gc_duration_seconds'
    ])
    expect(names.filter(name => name?.startsWith('nodejs_active_'))).to.deep.equal([])
  })

  it('is made at most once a second, however many read it (S7)', async () => {
    clock.advance(1000)
    made = 0
    const texts = await Promise.all(Array.from({ length: 200 }, () => read()))
    clock.advance(999)
    metrics.hookAbandoned.inc()
    expect(new Set([...texts, await read()]).size).to.equal(1)
    expect(made).to.equal(1)
    clock.advance(1)
    expect(await read()).to.include('apisix_drain_hook_abandoned_total 1\n')
  })
})

describe('the label gateway', () => {
  function rig() {
    const series = new Set<string>()
    const names = createGatewayNames(
      name => series.add(name),
      name => series.delete(name)
    )
    return { series, names }
  }

  it('keeps the series of a gateway that is gone for some scrapes, so that every reader sees their last values', () => {
    const { series, names } = rig()
    names.keep(['apisix-0', 'apisix-1'])
    expect(names.labelOf('apisix-late'), 'begins with the first value, too').to.equal('apisix-late')
    for (let i = 0; i < LAST_SCRAPES; i += 1) names.keep(['apisix-1'])
    expect([...series]).to.deep.equal(['apisix-0', 'apisix-1', 'apisix-late'])
    names.keep(['apisix-1'])
    expect([...series]).to.deep.equal(['apisix-1'])
    names.keep(['apisix-0', 'apisix-1'])
    expect([...series]).to.deep.equal(['apisix-1', 'apisix-0'])
  })
})

describe('drains that expire', () => {
  const draining = waitingDrain() as Drain & { readonly phase: 'draining'; readonly verdict: Waiting }
  const gateways: Waiting['gateways'] = [
    { name: 'apisix-0', grade: 'barrier', at: 1_000_050, why: '' },
    { name: 'apisix-1', grade: undefined, at: undefined, why: 'no connection to the barrier' }
  ]

  async function expired(differs: Partial<Waiting> = {}) {
    const metrics = createMetrics()
    const verdict = { ...draining.verdict, gateways, ...differs }
    const after: Drain = { ...draining, phase: 'expired', at: 1_027_000, verdict }
    meter(metrics, manualClock()).drain?.(draining, after, createStatuses().of(draining.uid))
    const { values } = await metrics.gatewayExpired.get()
    return Object.fromEntries(values.map(({ labels, value }) => [labels.gateway, value]))
  }

  it('are not counted if a last node had to stay, or if only requests in flight were left', async () => {
    expect(await expired({ lastEndpoint: true })).to.deep.equal({})
    expect(await expired({ barred: true })).to.deep.equal({})
  })
})

/** Makes clients whose calls take 20 ms and then return the answer that the test has set. */
function rig() {
  const clock = manualClock()
  const metrics = createMetrics()
  let outcome: unknown = 'fine'
  const call = async () => {
    clock.advance(20)
    if (outcome instanceof Error) throw outcome
    return outcome as never
  }
  const meters = metered(metrics, clock)
  const all = {
    list: call,
    get: call,
    patch: call,
    put: call,
    standalone: call,
    remove: call,
    inflight: call,
    state: call,
    entries: call
  }
  const value = async (name: string) => {
    const text = await metrics.registry.metrics()
    // Every series exists from the start, so series with the value 0 are left out.
    const moved = (line: string) => !line.includes('_bucket') && !line.endsWith('} 0')
    return text.split('\n').filter(line => line.startsWith(name) && moved(line))
  }
  return {
    admin: meters('admin', { ...all, pageSize: 10, close: () => {} }),
    barrier: meters('barrier', all),
    read: meters('control', { read: call }).read,
    value,
    say: (next: unknown) => (outcome = next)
  }
}

describe('metered clients', () => {
  it('return the client’s result, and measure the duration of every call', async () => {
    const { admin, read, barrier, value } = rig()
    const calls: readonly [api: string, operation: string, call: () => Promise<unknown>][] = [
      ['admin', 'get', () => admin.get()],
      ['admin', 'list', () => admin.list()],
      ['admin', 'standalone', () => admin.standalone()],
      ['control', 'read', () => read()],
      ['barrier', 'put', () => barrier.put()],
      ['barrier', 'remove', () => barrier.remove()],
      ['barrier', 'inflight', () => barrier.inflight()],
      ['barrier', 'state', () => barrier.state()],
      ['barrier', 'entries', () => barrier.entries()]
    ]
    for (const [api, operation, call] of calls) {
      expect(await call(), `${api} ${operation}`).to.equal('fine')
      const labels = `api="${api}",operation="${operation}",result="ok"`
      const name = 'apisix_drain_call_duration_seconds'
      expect(await value(`${name}_sum{${labels}}`)).to.deep.equal([`${name}_sum{${labels}} 0.02`])
      expect(await value(`${name}_count{${labels}}`)).to.deep.equal([`${name}_count{${labels}} 1`])
    }
    admin.close()
  })

  it('count writes by outcome, and errors by code', async () => {
    const { admin, say, value } = rig()
    await admin.patch()
    for (const code of ['ADMIN_CONFLICT', 'ADMIN_REFUSED', 'ADMIN_TIMEOUT'] as const) {
      const failure = new CodedError(code, '')
      say(failure)
      expect(await admin.put().catch((err: unknown) => err)).to.equal(failure)
    }
    expect((await value('apisix_drain_admin_writes_total')).toSorted()).to.deep.equal([
      'apisix_drain_admin_writes_total{result="accepted"} 1',
      'apisix_drain_admin_writes_total{result="conflict"} 1',
      'apisix_drain_admin_writes_total{result="failed"} 1',
      'apisix_drain_admin_writes_total{result="refused"} 1'
    ])
    expect(await value('apisix_drain_error_total')).to.have.length(3)
  })

  it('rest after a value for as many times as long as it took to make', () => {
    const clock = manualClock()
    let made = 0
    const value = seldom(clock, 0, 20, () => (clock.advance(50), ++made))
    for (let ms = 0; ms < 1000; ms++) {
      expect(value()).to.equal(1)
      clock.advance(1)
    }
    expect(value()).to.equal(2)
  })
})
