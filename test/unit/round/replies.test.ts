import { expect } from 'chai'
import { meter } from '../../../agent/report/metrics/round-metrics.ts'
import { createMetrics } from '../../../agent/report/metrics/metrics.ts'
import { logDrains } from '../../../agent/report/tell/events.ts'
import type { Drain, Hook } from '../../../agent/rules/drain/drain.ts'
import { runOf } from '../../../agent/rules/drain/eligible.ts'
import { createStatuses } from '../../../agent/round/gather/drain-status.ts'
import { createReplies } from '../../../agent/round/replies.ts'
import { DRAIN_SETTINGS, drainOf, drainsOf, hook, proven, seen } from '../../build/drain.ts'
import { barrier, inflight } from '../../build/evidence.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod, terminating } from '../../build/pod.ts'
import { memoryLog } from '../../build/serve.ts'

const GATEWAY = { id: 'g', name: 'apisix-1', ready: true, terminating: false }

describe('a hook that comes after the proof', () => {
  const old = pod('web-1', terminating(0))
  const drain = { ...drainOf(seen(old)), phase: 'proven', at: 5, verdict: proven() } as Drain
  const answered = (
    reading: unknown,
    instance: string | undefined,
    gateway: object = GATEWAY,
    differs = {}
  ) => {
    const acks: string[] = []
    const replies = createReplies({
      sources: {
        cluster: { gateways: () => [gateway] },
        barrier: { reading: () => reading, state: () => ({ status: instance && { instance } }) }
      } as never,
      drains: { current: () => drainsOf([drain]) },
      statuses: createStatuses(),
      settings: () => DRAIN_SETTINGS,
      notify: of => of({ ack: ({ result }) => void acks.push(result) }),
      clock: manualClock(20)
    })
    const ack = replies.atOnce(hook(old, differs))
    for (let i = 0; i < 10; i++) replies.atOnce(hook(old, differs))
    expect(acks, 'shown once (S8)').to.deep.equal(ack ? ['drained'] : [])
    return ack?.result
  }

  it('is answered at once while every gateway holds the seal', () => {
    expect(answered(barrier(), 'i1')).to.equal('drained')
    expect(answered(barrier({ problem: 'refused' }), 'i1'), 'it may be shutting down').to.equal('drained')
    expect(answered(barrier(), undefined), 'its state was not read yet').to.equal('drained')
  })

  it('waits while the sleep that it replaces covers other traffic', () => {
    expect(answered(barrier(), 'i1', GATEWAY, { atLeastMs: 1000 })).to.equal(undefined)
    expect(answered(barrier(), 'i1', GATEWAY, { receivedAt: 0, atLeastMs: 10 })).to.equal('drained')
  })

  it('waits for a gateway that has restarted or joined since, and for its requests', () => {
    expect(answered(barrier(), 'i2'), 'restarted').to.equal(undefined)
    expect(answered(undefined, undefined), 'new').to.equal(undefined)
    expect(answered(barrier({ entry: 'absent' }), 'i1')).to.equal(undefined)
    expect(answered(barrier({ inflight: inflight(1) }), 'i1')).to.equal(undefined)
    expect(answered(undefined, undefined, { ...GATEWAY, ready: false }), 'not serving').to.equal('drained')
  })
})

describe('the answers that are logged and counted', () => {
  const setUp = () => {
    const { log, lines } = memoryLog()
    const metrics = createMetrics()
    const clock = manualClock(0)
    const observers = [meter(metrics, clock), logDrains(log)]
    let drain: Drain
    const replies = createReplies({
      sources: { cluster: { gateways: () => [] } } as never,
      drains: { current: () => drainsOf([drain]) },
      statuses: createStatuses(),
      settings: () => DRAIN_SETTINGS,
      notify: of => observers.forEach(of),
      clock
    })
    /** Thirty equal calls. Returns how many answers were logged and counted. */
    const calls = async (next: Drain, differs: Partial<Hook> = {}) => {
      drain = next
      const look = { seen: seen(drain.pod), evidence: undefined }
      for (let i = 0; i < 30; i++) replies.now(hook(drain.pod, differs), look, 60_000)
      const text = await metrics.registry.metrics()
      const counts = [...text.matchAll(/^apisix_drain_hook_answers_total\{.*\} (\d+)$/gm)].map(([, n]) =>
        Number(n)
      )
      return [lines.filter(({ msg }) => msg === 'hook answered').length, counts.reduce((a, b) => a + b)]
    }
    return { calls, lines, metrics }
  }

  it('are one for each pod that ends and result, whatever the container; no limit of a caller is counted (S8)', async () => {
    const { calls, lines, metrics } = setUp()
    const expired = drainOf(seen(pod('web-1', terminating(0))), 60_000)
    expect(await calls(expired, { timeoutMs: 1 })).to.deep.equal([1, 0])
    expect(await calls(expired)).to.deep.equal([2, 1])
    expect(await calls(expired, { container: 'app' })).to.deep.equal([2, 1])
    expect(await calls({ ...expired, phase: 'proven', at: 5, verdict: proven() })).to.deep.equal([3, 2])
    expect(lines.at(-1)).to.include({ pod: 'web-1', hook: 'hook-1', result: 'drained', evidence: 'barrier' })
    expect(await metrics.registry.metrics()).to.contain('hook_duration_seconds_sum{result="drained"} 60')
  })

  it('are one for each run of each container that restarts', async () => {
    const { calls } = setUp()
    const restart = (runs: string, container: string) => {
      const web = pod('web-1', { runs })
      const calls = [{ container, run: runOf(web, container), at: 0 }]
      return [drainOf(seen(web, { calls })), { container }] as const
    }
    expect(await calls(...restart('app=1 proxy=1', 'app'))).to.deep.equal([1, 1])
    expect(await calls(...restart('app=2 proxy=1', 'app'))).to.deep.equal([2, 2])
    expect(await calls(...restart('app=2 proxy=1', 'proxy'))).to.deep.equal([3, 3])
  })
})
