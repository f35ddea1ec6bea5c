import { expect } from 'chai'
import type { Drain } from '../../../agent/rules/drain/drain.ts'
import { begin } from '../../../agent/rules/drain/step.ts'
import {
  BLIND_MS,
  createAddressOwnership,
  createBlindness,
  createOldGateways,
  vouchForEntries
} from '../../../agent/round/ownership.ts'
import { DRAIN_SETTINGS, proven, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'
import { gathering } from '../../../agent/round/gather/gather.ts'
import type { Sources } from '../../../agent/round/gather/sources.ts'
import { staticPart } from '../../../agent/kubernetes/reflect/watch-status.ts'

const draining = begin(seen(pod('web-1', terminating(0))), 0, DRAIN_SETTINGS) as Drain
const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain
const gone = { ...acked, phase: 'gone', at: 20 } as Drain

const owning = (someNamespacesOnly: boolean, serverBehindMs = 0) =>
  createAddressOwnership(someNamespacesOnly, () => serverBehindMs)

describe('address ownership', () => {
  it('is certain of every address while all pods are watched', () => {
    const ownership = owning(false)
    ownership.look(true, 0)
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, 0))).to.deep.equal([true, true, true])
    expect(ownership.ofGone()).to.equal('put')
  })

  it('survives a short loss of the watch', () => {
    const ownership = owning(false)
    ownership.look(false, 1000)
    ownership.look(false, 1000 + BLIND_MS)
    expect(ownership.isSure(acked, 1000 + BLIND_MS)).to.equal(true)
    ownership.look(true, 1001 + BLIND_MS)
    expect(ownership.isSure(acked, 2000 + BLIND_MS)).to.equal(true)
  })

  it('ends for released pods if the watch stays down', () => {
    const ownership = owning(false)
    ownership.look(false, 1000)
    const later = 1001 + BLIND_MS
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, later))).to.deep.equal([
      true,
      false,
      false
    ])
  })

  it('is no reason to put or to remove an entry while the watch is down, unless a hook is held', () => {
    const ownership = owning(false)
    const fates = (isHeld: boolean) =>
      [draining, acked, gone].map(drain => ownership.ofDrain(drain, isHeld, 40_000))
    ownership.look(false, 1000)
    expect(fates(false)).to.deep.equal(['keep', 'keep', 'keep'])
    expect(ownership.ofDrain(draining, true, 40_000)).to.equal('put')
    expect(ownership.ofGone()).to.equal('keep')
    ownership.look(true, 90_000)
    expect(fates(false)).to.deep.equal(['put', 'put', 'put'])
    expect(ownership.ofGone()).to.equal('put')
  })

  it('ends with the pod if only some namespaces are watched', () => {
    const ownership = owning(true)
    ownership.look(true, 0)
    expect([draining, acked, gone].map(drain => ownership.isSure(drain, 0))).to.deep.equal([
      true,
      true,
      false
    ])
    expect(ownership.ofGone()).to.equal('drop')
  })

  it('of some namespaces leaves an entry in place until the grace of a gone pod is over', () => {
    const fate = (drain: Drain, now: number, serverBehindMs = 0) => {
      const ownership = owning(true, serverBehindMs)
      ownership.look(true, 0)
      return ownership.ofDrain(drain, false, now)
    }
    expect(fate(acked, 30_000), 'it is not gone').to.equal('put')
    expect(fate(gone, 29_999)).to.equal('put')
    expect(fate(gone, 30_000)).to.equal('drop')
    expect(fate(gone, 34_999, 5000)).to.equal('put')
    const local = { ...gone, pod: pod('web-1', { graceMs: 10_000 }) } as Drain
    expect(fate(local, 9_999)).to.equal('put')
    expect(fate(local, 10_000)).to.equal('drop')
  })

  it('ends with the containers if only some namespaces are watched, whatever hook there was (S4)', () => {
    const finished = (differs: object) =>
      ({ ...draining, pod: pod('web-1', { phase: 'Failed' }), ...differs }) as Drain
    const some = owning(true)
    const all = owning(false)
    for (const ownership of [some, all]) ownership.look(true, 0)
    const ended = finished({ witnesses: { phase: 0 } })
    const hooked = finished({ witnesses: { phase: 0, hook: 0 } })
    const answered = { ...hooked, phase: 'proven', at: 10, verdict: proven() } as Drain
    const three = [ended, hooked, answered]
    expect(three.map(drain => some.isSure(drain, 0))).to.deep.equal([false, false, false])
    for (const isHeld of [false, true])
      expect(three.map(drain => some.ofDrain(drain, isHeld, 1))).to.deep.equal(['drop', 'drop', 'drop'])
    expect(three.map(drain => all.isSure(drain, 0))).to.deep.equal([true, true, true])
    expect(three.map(drain => all.ofDrain(drain, false, 1))).to.deep.equal(['put', 'put', 'put'])
  })
})

describe('a watch that is down', () => {
  it('is too old after a while, counted from its end, and not once it is back', () => {
    const watch = createBlindness()
    expect(watch.isBlind(1e9)).to.equal(false)
    watch.look(false, 1000)
    watch.look(false, 5000)
    expect(watch.isBlind(1000 + BLIND_MS)).to.equal(false)
    expect(watch.isBlind(1001 + BLIND_MS)).to.equal(true)
    watch.look(true, 1002 + BLIND_MS)
    expect(watch.isBlind(1e9)).to.equal(false)
  })

  it('makes the list of gateways too old if it is their watch alone', () => {
    const after = (...down: string[]) => {
      const parts = ['pods', 'gateways'].map(name => ({
        name,
        state: down.includes(name) ? 'stale' : 'live'
      }))
      const isOld = createOldGateways(() => parts as never)
      // A gateway that has fetched is not ready for two seconds.
      return [isOld(0), isOld(2000), isOld(2001)]
    }
    expect(after('gateways')).to.deep.equal([false, false, true])
    expect(after('gateways', 'pods')).to.deep.equal([false, false, false])
    expect(after()).to.deep.equal([false, false, false])
  })

  it('leaves the list of gateways incomplete if it is the watch of gateways', () => {
    const sources = { cluster: { gateways: () => [], parts: () => [{ name: 'gateways', synced: true }] } }
    const known = (gatewaysAreOld: boolean) =>
      gathering(sources as unknown as Sources, {
        world: {} as never,
        drains: new Map(),
        tookOver: () => false,
        before: { changes: [], kept: [] },
        now: 0,
        gatewaysAreOld
      }).gatewaysKnown
    expect([known(false), known(true)]).to.deep.equal([true, false])
  })
})

const sources = (state: 'live' | 'stale') =>
  ({
    cluster: {
      parts: () => [{ ...staticPart('pods', 1), state }, staticPart('endpointslices', 1)],
      gateways: () => [{}]
    },
    inventory: { readAt: () => 1 }
  }) as unknown as Sources

describe('whether the agent knows every entry', () => {
  const why = (state: 'live' | 'stale', looked: boolean, failing = false) => {
    const said = vouchForEntries(sources(state), failing, looked)
    return said.ok ? '' : said.why
  }

  it('knows them once a round has used a live watch', () => {
    expect(why('live', true)).to.equal('')
  })

  it('does not know them before that, while the watch is down, or after a failed round', () => {
    expect(why('live', false)).to.include('not looked at yet')
    expect(why('stale', true)).to.include('the watch of pods is stale')
    expect(why('live', true, true)).to.include('the last round failed')
  })
})
