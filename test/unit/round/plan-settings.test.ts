import { expect } from 'chai'
import type { PodUid } from '../../../agent/rules/drain/facts.ts'
import { planSettings } from '../../../agent/round/plan-settings.ts'
import { barrier as reading } from '../../build/evidence.ts'

const UID = 'uid-1' as PodUid

/** Whether the barrier keeps requests away from the pod, according to these reads of the gateways. */
function isBarred(readings: readonly unknown[], synced = true, doubt = ''): boolean {
  const gateways = readings.map((_, i) => ({ id: String(i) }))
  const sources = {
    mode: { current: () => ({ mode: 'etcd' }) },
    cluster: { gateways: () => gateways, parts: () => [{ name: 'gateways', synced }] },
    barrier: { reading: (_: unknown, id: string) => readings[Number(id)], doubt: () => doubt }
  }
  const settings = { dryRun: false, deferMs: 0 }
  const { unbarred } = planSettings(settings, sources as never, new Map([[UID, {} as never]]), new Set())
  return !unbarred?.has(UID)
}

describe('the state of the barrier in a plan', () => {
  it('keeps requests away if every gateway answers, or is about to answer', () => {
    expect(isBarred([reading(), reading()])).to.equal(true)
    expect(isBarred([reading(), undefined])).to.equal(true)
  })

  it('does not keep requests away if one barrier is missing or unusable', () => {
    expect(isBarred([reading(), reading({ problem: 'refused' })])).to.equal(false)
    expect(isBarred([reading({ fit: false })])).to.equal(false)
    expect(isBarred([reading()], true, 'a load balancer')).to.equal(false)
  })

  it('does not keep requests away if the gateways are not known yet, or there is none', () => {
    expect(isBarred([reading()], false)).to.equal(false)
    expect(isBarred([])).to.equal(false)
  })
})
