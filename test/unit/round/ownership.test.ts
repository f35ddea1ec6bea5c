import { expect } from 'chai'
import type { Drain } from '../../../agent/rules/drain/drain.ts'
import { begin } from '../../../agent/rules/drain/step.ts'
import { BLIND_MS } from '../../../agent/round/blindness.ts'
import { createAddressOwnership } from '../../../agent/round/ownership.ts'
import { DRAIN_SETTINGS, proven, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'

const draining = begin(seen(pod('web-1', terminating(0))), 0, DRAIN_SETTINGS) as Drain
const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain
const gone = { ...acked, phase: 'gone', at: 20 } as Drain

describe('address ownership', () => {
  it('is certain of every address while all pods are watched', () => {
    const ownership = createAddressOwnership(false)
    ownership.look(true, 0)
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, 0))).to.deep.equal([true, true, true])
    expect(ownership.isSureOfGone(0)).to.equal(true)
  })

  it('survives a short loss of the watch', () => {
    const ownership = createAddressOwnership(false)
    ownership.look(false, 1000)
    ownership.look(false, 1000 + BLIND_MS)
    expect(ownership.isSure(acked, 1000 + BLIND_MS)).to.equal(true)
    ownership.look(true, 1001 + BLIND_MS)
    expect(ownership.isSure(acked, 2000 + BLIND_MS)).to.equal(true)
  })

  it('ends for released pods if the watch stays down', () => {
    const ownership = createAddressOwnership(false)
    ownership.look(false, 1000)
    const later = 1001 + BLIND_MS
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, later))).to.deep.equal([
      true,
      false,
      false
    ])
    expect(ownership.isSureOfGone(later)).to.equal(false)
  })

  it('ends with the pod if only some namespaces are watched', () => {
    const ownership = createAddressOwnership(true)
    ownership.look(true, 0)
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, 0))).to.deep.equal([
      true,
      true,
      false
    ])
    expect(ownership.isSureOfGone(0)).to.equal(false)
  })

  it('leaves an entry in place while the containers may still be serving', () => {
    const ownership = createAddressOwnership(true)
    expect(ownership.mayStillServe(acked, 0, 29_999)).to.equal(true)
    expect(ownership.mayStillServe(acked, 0, 30_000)).to.equal(false)
    expect(ownership.mayStillServe(acked, 5000, 34_999)).to.equal(true)
    const local = { ...acked, pod: pod('web-1', { graceMs: 10_000 }) } as Drain
    expect(ownership.mayStillServe(local, 0, 9_999)).to.equal(true)
    expect(ownership.mayStillServe(local, 0, 10_000)).to.equal(false)
  })

  it('ends with the containers if only some namespaces are watched, unless a hook is held', () => {
    const finished = (differs: object) =>
      ({ ...draining, pod: pod('web-1', { phase: 'Failed' }), ...differs }) as Drain
    const some = createAddressOwnership(true)
    const all = createAddressOwnership(false)
    for (const ownership of [some, all]) ownership.look(true, 0)
    const ended = finished({ witnesses: { phase: 0 } })
    const held = finished({ witnesses: { phase: 0, hook: 0 } })
    const answered = { ...held, phase: 'proven', at: 10, verdict: proven() } as Drain
    expect([ended, held, answered].map(drain => some.isSure(drain, 0))).to.deep.equal([false, true, false])
    expect([ended, held, answered].map(drain => some.mayStillServe(drain, 0, 1))).to.deep.equal([
      false,
      true,
      false
    ])
    expect([ended, held, answered].map(drain => all.isSure(drain, 0))).to.deep.equal([true, true, true])
    expect([ended, held, answered].map(drain => all.mayStillServe(drain, 0, 1))).to.deep.equal([
      true,
      true,
      true
    ])
  })
})
