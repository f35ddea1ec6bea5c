import { expect } from 'chai'
import type { Drain, Waiting } from '../../../../agent/rules/drain/drain.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import { meter } from '../../../../agent/report/metrics/round-metrics.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { waitingDrain } from '../../../build/snapshot.ts'

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
    meter(metrics, manualClock()).drain?.(draining, after, createMemories().of(draining.uid))
    const { values } = await metrics.gatewayExpired.get()
    return Object.fromEntries(values.map(({ labels, value }) => [labels.gateway, value]))
  }

  it('are counted for each gateway that has not confirmed', async () => {
    expect(await expired())
      .to.include({ 'apisix-1': 1 })
      .and.not.have.property('apisix-0')
  })

  it('are not counted if a last node had to stay, or if only requests in flight were left', async () => {
    expect(await expired({ lastEndpoint: true })).to.deep.equal({})
    expect(await expired({ barred: true })).to.deep.equal({})
  })
})
