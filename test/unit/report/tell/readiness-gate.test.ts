import { expect } from 'chai'
import { createReadinessGate } from '../../../../agent/report/tell/readiness-gate.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import { holder } from '../../../build/holder.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod } from '../../../build/pod.ts'
import { memoryLog } from '../../../build/serve.ts'

const turns = async () => {
  for (let i = 0; i < 10; i++) await new Promise(resolve => setImmediate(resolve))
}
const fresh = pod('fresh', { ips: ['10.0.0.2'], ready: false, gate: 'waiting' })

describe('readiness gate', () => {
  const metrics = createMetrics()

  function rig() {
    const clock = manualClock()
    const { log, lines } = memoryLog()
    const state = {
      waiting: [fresh],
      leads: true,
      revision: 40,
      live: true,
      answer: (): { status: number } => ({ status: 200 })
    }
    const web = holder('web', ['10.0.0.1:8080', '10.0.0.2:8080'], { revision: 41 })
    const written: unknown[] = []
    const events: string[] = []
    const gate = createReadinessGate({
      clock,
      log,
      metrics,
      failOpenMs: 60_000,
      events: { addGateOpened: ({ name }, why) => void events.push(`${name}: ${why}`) },
      patch: async (path, body) => {
        written.push({ path, body })
        return state.answer()
      },
      sources: {
        leader: { leads: () => state.leads },
        mode: { current: () => ({ mode: 'etcd' }) },
        sync: { following: () => ({ holders: [web.key], problems: [] }) },
        survey: undefined,
        cluster: {
          parts: () => [{ name: 'pods', synced: true, state: state.live ? 'live' : 'stale' }],
          gateways: () => [{ id: 'g', name: 'apisix-0', ready: true, terminating: false }],
          pods: { waiting: () => state.waiting, get: () => fresh, byIp: () => [fresh] },
          slices: { servicesOf: () => [], serving: () => [], of: () => [] }
        },
        inventory: {
          byHost: () => [web],
          listedSince: () => 41,
          readAt: () => clock.now(),
          refresh: async () => {}
        },
        barrier: {
          state: () => ({
            problem: '',
            lastSuccessAt: clock.now(),
            told: { workers: [{ revision: state.revision, applied: 1 }] }
          })
        }
      } as never
    })
    const pass = async (ms: number) => {
      clock.advance(ms)
      gate.observer.round?.(1)
      await turns()
    }
    return { gate, clock, state, written, events, lines, pass }
  }

  it('is opened once, by the leader, when the last worker knows the pod; for this uid only', async () => {
    const { state, written, events, pass } = rig()
    await pass(200)
    expect(written).to.deep.equal([])
    state.revision = 41
    state.leads = false
    await pass(200)
    expect(written).to.deep.equal([])
    state.leads = true
    await pass(200)
    await pass(200)
    expect(written).to.have.length(1)
    expect(written[0]).to.have.property('path', '/api/v1/namespaces/shop/pods/fresh/status')
    expect(written[0]).to.have.nested.property('body.metadata.uid', fresh.uid)
    expect(written[0]).to.have.nested.property('body.status.conditions[0].status', 'True')
    expect(events).to.deep.equal([])
    // The watch still does not show the open gate, so another writer may have removed it. The agent writes it again.
    await pass(5000)
    expect(written).to.have.length(2)
  })

  it('is tried again if the API server refuses it, and the failure is reported once', async () => {
    const { state, written, lines, pass } = rig()
    state.revision = 41
    state.answer = () => ({ status: 500 })
    await pass(200)
    await pass(200)
    expect(written, 'not at every look').to.have.length(1)
    await pass(1000)
    state.answer = () => {
      throw new Error('no answer')
    }
    await pass(1000)
    expect(written).to.have.length(3)
    expect(lines.filter(({ msg }) => msg === 'a readiness gate could not be opened')).to.have.length(1)
    state.answer = () => ({ status: 200 })
    await pass(1000)
    expect(written).to.have.length(4)
    state.waiting = []
    await pass(6000)
    expect(written).to.have.length(4)
  })

  it('is opened after the configured time while Kubernetes is unreachable, with a warning and an Event', async () => {
    const { state, written, events, pass } = rig()
    state.revision = 41
    state.live = false
    await pass(200)
    await pass(59_000)
    expect(written).to.deep.equal([])
    await pass(1000)
    expect(written).to.have.length(1)
    expect(events).to.deep.equal([
      'fresh: not in every gateway after 1m: not all of Kubernetes, gateways and APISIX was heard of'
    ])
  })

  it('is not written once the agent stops', async () => {
    const { gate, state, written, pass } = rig()
    state.revision = 41
    await gate.stop()
    await pass(200)
    expect(written).to.deep.equal([])
  })
})
