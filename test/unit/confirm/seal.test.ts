import { expect } from 'chai'

import type { BarrierReading } from '../../../agent/confirm/evidence.ts'
import type { GatewayState } from '../../../agent/confirm/gateway-state.ts'
import { type Needed, sealable, sealableAtOnce } from '../../../agent/confirm/seal.ts'
import { barrier } from '../../build/evidence.ts'
import { pod } from '../../build/pod.ts'

const drain = { since: 0, deadline: 25_000, pod: pod('web-1') }

describe('sealable', () => {
  const idle = barrier({ entry: 'draining', readAfterSeal: false, at: 0 })
  const ask = (
    current: BarrierReading | undefined,
    more: {
      before?: BarrierReading
      last?: boolean
      now?: number
      waitForInflight?: boolean
      needed?: number
      applied?: number
      quietMs?: number
    } = {}
  ) =>
    sealable({ before: more.before, current }, drain, more.last ?? false, more.now ?? 0, {
      sealBeforeMs: 500,
      waitForInflight: more.waitForInflight ?? true,
      needed: more.needed === undefined ? undefined : new Map([['upstreams', more.needed]]),
      applied: () => more.applied,
      quietSince: -1000,
      quietMs: more.quietMs ?? 1000
    })

  it('when idle and nothing was bypassed since the last look', () => {
    expect(ask(idle)).to.deep.equal({ seal: true, why: 'nobody needed it for a while' })
    const twice = { ...idle, bypasses: 2 }
    expect(ask(twice, { before: twice }).seal).to.equal(true)
  })

  it('as soon as every worker has applied a configuration that lists another node, and not before', () => {
    const soon = { quietMs: 60_000 }
    expect(ask(idle, { ...soon, needed: 7, applied: 7 }).seal).to.equal(true)
    expect(ask(idle, { ...soon, needed: 7, applied: 6 }).why).to.match(
      /revision 6 of the upstreams only.*since 7/
    )
  })

  it('not while a worker is behind in one of the kinds of object that list the pod', () => {
    const applied = { upstreams: 9, routes: 4 } as Record<string, number>
    const told = (needed: Needed) =>
      sealable({ before: undefined, current: idle }, drain, false, 0, {
        sealBeforeMs: 500,
        waitForInflight: true,
        needed,
        applied: kind => applied[kind],
        quietSince: 0,
        quietMs: 60_000
      })
    expect(
      told(
        new Map([
          ['upstreams', 7],
          ['routes', 4]
        ])
      ).seal
    ).to.equal(true)
    expect(
      told(
        new Map([
          ['upstreams', 7],
          ['routes', 5]
        ])
      ).why
    ).to.match(/revision 4 of the routes only.*since 5/)
    expect(
      told(
        new Map([
          ['upstreams', 7],
          ['services', 5]
        ])
      ).why
    ).to.match(/is not known/)
  })

  it('where no revision tells, only after a while without a bypass', () => {
    expect(ask(idle, { quietMs: 1001 }).seal).to.equal(false)
    expect(ask(idle, { quietMs: 1001, needed: 7 }).seal).to.equal(false)
    expect(ask(idle, { quietMs: 1001, applied: 7 }).seal).to.equal(false)
    expect(ask(idle, { quietMs: 1000 }).seal).to.equal(true)
  })

  it('not by a look that is from before that while was over, however late it is', () => {
    expect(ask({ ...idle, at: -1 }, { now: 20_000 }).seal).to.equal(false)
    expect(ask({ ...idle, at: 0 }, { now: 20_000 }).seal).to.equal(true)
  })

  it('not when it was picked as the only node since the last look', () => {
    expect(ask({ ...idle, bypasses: 1 }).seal).to.equal(false)
    expect(ask({ ...idle, bypasses: 3 }, { before: { ...idle, bypasses: 2 } }).seal).to.equal(false)
  })

  it('counts bypasses from 0 again after the gateway restarted', () => {
    const restarted = { ...idle, instance: 'i2', bypasses: 1 }
    expect(ask(restarted, { before: { ...idle, bypasses: 5 } }).seal).to.equal(false)
  })

  it('not while requests are in flight, unless they are not waited for', () => {
    const busy = { ...idle, inflight: { requests: 1, long: 0 } }
    const long = { ...idle, inflight: { requests: 0, long: 1 } }
    expect([ask(busy).seal, ask(long).seal]).to.deep.equal([false, false])
    expect(ask(busy, { waitForInflight: false }).seal).to.equal(true)
  })

  it('not the last endpoint, until the budget is nearly over', () => {
    expect(ask(idle, { last: true, now: 24_499 }).seal).to.equal(false)
    expect(ask(idle, { last: true, now: 24_500 })).to.deep.equal({
      seal: true,
      why: 'the budget is nearly over'
    })
  })

  it('not where the barrier cannot be used, nor twice', () => {
    const late = { now: 24_900 }
    const unusable = [
      undefined,
      { ...idle, problem: 'timeout' },
      { ...idle, fit: false },
      barrier(),
      { ...idle, entry: 'absent' as const }
    ]
    for (const reading of unusable) expect(ask(reading, late).seal).to.equal(false)
  })
})

describe('sealable at once', () => {
  const state = (revisions: readonly number[], differs: { fit?: boolean; problem?: string } = {}) =>
    ({
      told: { fit: differs.fit ?? true, workers: revisions.map(revision => ({ revision })) },
      lastSuccessAt: 0,
      lastAttemptAt: 0,
      problem: differs.problem ?? ''
    }) as unknown as GatewayState

  const seven: Needed = new Map([['upstreams', 7]])

  it('only where every kind of object has been applied that matters: the highest revision of all says nothing of one', () => {
    const told = (revisions: Record<string, number>) => {
      const known = state([9])
      return {
        ...known,
        told: { fit: true, workers: [{ revision: 9, revisions }] }
      } as unknown as GatewayState
    }
    expect(sealableAtOnce(told({ upstreams: 7, routes: 9 }), seven)).to.equal(true)
    expect(sealableAtOnce(told({ upstreams: 6, routes: 9 }), seven)).to.equal(false)
    expect(sealableAtOnce(told({ upstreams: 0, routes: 9 }), seven), 'it has not said').to.equal(false)
    expect(sealableAtOnce(told({ routes: 9 }), seven), 'this APISIX has no such kind').to.equal(true)
    const both: Needed = new Map([...seven, ['routes', 8]])
    expect(sealableAtOnce(told({ upstreams: 9, routes: 7 }), both)).to.equal(false)
    expect(sealableAtOnce(told({ upstreams: 7, routes: 8 }), both)).to.equal(true)
  })

  it('when every worker is known to have applied what takes over', () => {
    expect(sealableAtOnce(state([7, 9]), seven)).to.equal(true)
    expect(sealableAtOnce(state([6, 9]), seven)).to.equal(false)
    expect(sealableAtOnce(state([0, 9]), seven), 'one that has not looked yet').to.equal(false)
  })

  it('never on a guess', () => {
    expect(sealableAtOnce(undefined, seven)).to.equal(false)
    expect(sealableAtOnce(state([9]), undefined)).to.equal(false)
    expect(sealableAtOnce(state([9], { fit: false }), seven)).to.equal(false)
    expect(sealableAtOnce(state([9], { problem: 'timed out' }), seven), 'it may have restarted').to.equal(
      false
    )
    expect(sealableAtOnce(state([]), seven)).to.equal(false)
  })
})
