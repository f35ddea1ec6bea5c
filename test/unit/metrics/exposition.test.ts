import { expect } from 'chai'
import { createExposition } from '../../../agent/metrics/exposition.ts'
import { createMetrics } from '../../../agent/metrics/metrics.ts'
import { LAG, RENAMED } from '../../../agent/metrics/old-names.ts'

describe('the text of /metrics', () => {
  const metrics = createMetrics()
  const { metrics: read, contentType } = createExposition(metrics, () =>
    metrics.drains.set({ phase: 'draining' }, 3)
  )

  it('has the metrics of the agent and of its process, each once (D15)', async () => {
    const text = await read()
    expect(contentType).to.include('text/plain')
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    expect(new Set(names).size).to.equal(names.length)
    expect(names).to.include.members([
      'apisix_drain_hook_waiting',
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_gc_duration_seconds'
    ])
    expect(names.filter(name => name?.startsWith('nodejs_active_'))).to.deep.equal([])
  })

  it('has every old name, with the same values, and names the replacement', async () => {
    metrics.drainPhase.observe({ step: 'seen-ack' }, 0.004)
    const text = await read()
    for (const [old, name] of Object.entries(RENAMED)) {
      expect(text).to.include(`# HELP ${old} Deprecated: use ${name}.\n# TYPE ${old} `)
      const values = (of: string) =>
        [...text.matchAll(new RegExp(`^${of}(_bucket|_sum|_count)?(?=[{ ])(.*)$`, 'gm'))].map(
          ([, part, rest]) => `${part}${rest}`
        )
      expect(values(old)).to.deep.equal(values(name))
      expect(values(old)).not.empty
    }
    expect(text).to.include('apisix_drain_drain_active{phase="draining"} 3\n')
    for (const quantile of Object.keys(LAG.quantiles))
      expect(text).to.match(new RegExp(`^${LAG.name}\\{quantile="${quantile}"\\} [\\d.e-]+$`, 'm'))
  })

  it('measures the process once, whatever the number of agents', async () => {
    const other = createExposition(createMetrics(), () => {})
    expect(await other.metrics()).to.match(/^process_start_time_seconds \d+$/m)
  })
})
