import { expect } from 'chai'
import type { Drain } from '../../../agent/rules/drain/drain.ts'
import { createStatuses } from '../../../agent/round/gather/drain-status.ts'
import { createReplies } from '../../../agent/round/replies.ts'
import { DRAIN_SETTINGS, drainOf, drainsOf, hook, proven, seen } from '../../build/drain.ts'
import { barrier, inflight } from '../../build/evidence.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod, terminating } from '../../build/pod.ts'

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
