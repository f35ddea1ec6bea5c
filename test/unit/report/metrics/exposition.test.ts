import { expect } from 'chai'
import { createExposition } from '../../../../agent/report/metrics/round-metrics.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'

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

  it('measures the process once, whatever the number of agents', async () => {
    const other = createExposition(createMetrics(), clock, () => {})
    expect(await other.metrics()).to.match(/^process_start_time_seconds \d+$/m)
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
