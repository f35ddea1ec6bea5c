import { expect } from 'chai'
import { CodedError } from '../../../../agent/base/errors.ts'
import { metered } from '../../../../agent/report/metrics/round-metrics.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import { manualClock } from '../../../build/manual-clock.ts'

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
    admin: meters.admin({ ...all, pageSize: 10, close: () => {} }),
    barrier: meters.barrier(all),
    read: meters.control(call),
    value,
    say: (next: unknown) => (outcome = next)
  }
}

describe('metered clients', () => {
  it('return the client’s result and measure its duration', async () => {
    const { admin, read, barrier, value } = rig()
    expect(await admin.get('upstreams', 'web')).to.equal('fine')
    expect(await read('10.0.0.1')).to.equal('fine')
    expect(await barrier.put([])).to.equal('fine')
    expect(await value('apisix_drain_admin_call_duration_seconds_sum')).to.deep.equal([
      'apisix_drain_admin_call_duration_seconds_sum{operation="get",result="ok"} 0.02'
    ])
    expect(await value('apisix_drain_control_call_duration_seconds_count')).to.deep.equal([
      'apisix_drain_control_call_duration_seconds_count{result="ok"} 1'
    ])
    expect(await value('apisix_drain_barrier_call_duration_seconds_count')).to.deep.equal([
      'apisix_drain_barrier_call_duration_seconds_count{operation="put",result="ok"} 1'
    ])
  })

  it('count writes by outcome, and errors by code', async () => {
    const { admin, say, value } = rig()
    await admin.patch('upstreams', 'web', {})
    for (const code of ['ADMIN_CONFLICT', 'ADMIN_REFUSED', 'ADMIN_TIMEOUT'] as const) {
      const failure = new CodedError(code, '')
      say(failure)
      expect(await admin.put('upstreams', 'web', {}).catch((err: unknown) => err)).to.equal(failure)
    }
    expect((await value('apisix_drain_admin_writes_total')).toSorted()).to.deep.equal([
      'apisix_drain_admin_writes_total{result="accepted"} 1',
      'apisix_drain_admin_writes_total{result="conflict"} 1',
      'apisix_drain_admin_writes_total{result="failed"} 1',
      'apisix_drain_admin_writes_total{result="refused"} 1'
    ])
    expect(await value('apisix_drain_error_total')).to.have.length(3)
  })

  it('measure every call of the client', async () => {
    const { admin, barrier, value } = rig()
    await admin.list('routes', 1)
    await admin.standalone()
    await barrier.remove({ uids: [] })
    await barrier.inflight([], 0)
    await barrier.state()
    await barrier.entries()
    admin.close()
    const operations = (lines: string[]) => lines.map(line => /operation="(\w+)"/.exec(line)?.[1])
    expect(operations(await value('apisix_drain_admin_call_duration_seconds_count'))).to.deep.equal([
      'list',
      'standalone'
    ])
    expect(operations(await value('apisix_drain_barrier_call_duration_seconds_count'))).to.deep.equal([
      'remove',
      'inflight',
      'state',
      'entries'
    ])
  })
})
