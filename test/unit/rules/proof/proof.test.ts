import { expect } from 'chai'
import * as fc from 'fast-check'
import type { BarrierReading, Evidence, Observation } from '../../../../agent/rules/proof/verdict.ts'
import { isUnlisted, prove } from '../../../../agent/rules/proof/proof.ts'
import { proveByReads } from '../../../../agent/rules/proof/observed.ts'
import {
  PROOF_SETTINGS,
  SAID,
  barrier,
  evidence,
  gatewayEvidence,
  holderEvidence,
  observation,
  inflight
} from '../../../build/evidence.ts'
import { pod } from '../../../build/pod.ts'

const time = fc.integer({ min: 0, max: 5_000 })
const maybe = <T>(arb: fc.Arbitrary<T>) => fc.option(arb, { nil: undefined })

const barrierArb: fc.Arbitrary<BarrierReading> = fc
  .record({
    at: time,
    fit: fc.constantFrom(true, true, false),
    entry: fc.constantFrom('absent' as const, 'draining' as const, 'sealed' as const, 'sealed' as const),
    inflight: fc
      .tuple(fc.constantFrom(0, 0, 2), fc.constantFrom(0, 0, 1))
      .map(([requests, upgraded]) => inflight(requests, { upgraded })),
    readAfterSeal: fc.boolean(),
    binding: fc.boolean(),
    word: fc.constantFrom(SAID, SAID, { ...SAID, complete: false }),
    problem: fc.constantFrom('', '', 'timeout')
  })
  .map(barrier)

const observationArb: fc.Arbitrary<Observation> = fc
  .record({
    cleanReads: fc.nat(6),
    firstCleanAt: time,
    stillListed: fc.constantFrom(false, false, true),
    problem: fc.constantFrom('', '', 'refused')
  })
  .map(observation)

const evidenceArb: fc.Arbitrary<Evidence> = fc
  .record({
    isAbsent: fc.boolean(),
    gatewaysKnown: fc.constantFrom(true, true, false),
    holders: fc.array(
      fc
        .record({
          state: fc.constantFrom(
            'removed' as const,
            'removed' as const,
            'listed' as const,
            'foreign' as const,
            'kept-last' as const
          ),
          removedAt: time,
          observable: fc.constantFrom(true, true, false)
        })
        .map(({ removedAt, ...differs }) =>
          holderEvidence('upstreams/web', {
            ...differs,
            removedAt: differs.state === 'removed' ? removedAt : undefined
          })
        ),
      { maxLength: 2 }
    ),
    gateways: fc.array(
      fc
        .record({
          barrier: maybe(barrierArb),
          observation: maybe(observationArb),
          gateway: fc.record({ ready: fc.constantFrom(true, true, false), terminating: fc.boolean() })
        })
        .map(differs => gatewayEvidence('gw', differs as object)),
      { maxLength: 3 }
    )
  })
  .map(evidence)

const drain = { since: 0, pod: pod('web-1'), witnesses: { deletion: 0 } }
const RULES = { barrier: prove, observed: proveByReads }
type By = keyof typeof RULES
const law = (check: (evidence: Evidence, now: number, by: By) => void) =>
  fc.assert(
    fc.property(
      evidenceArb,
      fc.integer({ min: 0, max: 12_000 }),
      fc.constantFrom<By>('barrier', 'observed'),
      check
    ),
    { numRuns: 2_000 }
  )
const verdictOf = (evidence: Evidence, now: number, by: By) => RULES[by](evidence, drain, now, PROOF_SETTINGS)

/** Returns variants of the evidence that are better in one part, without a new gateway or a new doubt. */
const improvements = (e: Evidence): Evidence[] => [
  { ...e, gatewaysKnown: true },
  {
    ...e,
    holders: e.holders.map(h => ({ ...h, state: 'removed', removedAt: h.removedAt ?? 0, observable: true }))
  },
  { ...e, isAbsent: true },
  { ...e, gateways: e.gateways.map(g => ({ ...g, gateway: { ...g.gateway, ready: true } })) },
  {
    ...e,
    gateways: e.gateways.map(g => ({
      ...g,
      observation: g.observation && {
        ...g.observation,
        cleanReads: g.observation.cleanReads + 9,
        problem: '',
        stillListed: false
      }
    }))
  },
  { ...e, gateways: e.gateways.map(g => ({ ...g, barrier: g.barrier && barrier({ at: g.barrier.at }) })) }
]

describe('laws of proof', () => {
  it('better evidence never makes a worse verdict', () =>
    law((e, now, by) => {
      if (verdictOf(e, now, by).kind === 'waiting') return
      for (const better of improvements(e)) expect(verdictOf(better, now, by).kind).to.equal('proven')
    }))

  it('time alone never makes a worse verdict, and changes nothing before `until`', () =>
    law((e, now, by) => {
      const [before, later] = [verdictOf(e, now, by), verdictOf(e, now + 700, by)]
      if (before.kind === 'proven') expect(later.kind).to.equal('proven')
      if (before.kind === 'waiting' && !(before.until !== undefined && before.until <= now + 700))
        expect([later.kind, later.kind === 'waiting' && later.vain]).to.deep.equal(['waiting', before.vain])
    }))

  it('a proof by the barrier means: every known gateway is fit, sealed, and idle after the seal', () =>
    law(e => {
      if (verdictOf(e, 9000, 'barrier').kind === 'waiting') return
      expect(e.gatewaysKnown && e.gateways.length > 0).to.equal(true)
      for (const { barrier: b } of e.gateways) {
        expect(b).to.include({ fit: true, entry: 'sealed', readAfterSeal: true, problem: '' })
        expect(b?.inflight).to.include({ requests: 0 })
        expect(b?.word).to.include({ complete: true })
      }
    }))

  it('a proof by reads means: every list has dropped it, every gateway was read without it, and a sleep has passed since', () =>
    law((e, now) => {
      const verdict = verdictOf(e, now, 'observed')
      if (verdict.kind === 'waiting') return
      expect(e.gatewaysKnown && e.gateways.length > 0 && e.notLiteral === undefined).to.equal(true)
      for (const { observation: o, gateway } of e.gateways) {
        expect(o).to.include({ stillListed: false, problem: '' })
        expect(gateway.ready || gateway.terminating).to.equal(true)
        expect(o!.firstCleanAt! + PROOF_SETTINGS.settleMs).to.be.at.most(now)
      }
      for (const { state, observable, removedAt } of e.holders) {
        expect([state, observable]).to.deep.equal(['removed', true])
        expect(removedAt! + PROOF_SETTINGS.settleMs).to.be.at.most(now)
      }
    }))

  it('the order of gateways and holders makes no difference to the verdict', () =>
    law((e, now, by) => {
      const turned = { ...e, gateways: e.gateways.toReversed(), holders: e.holders.toReversed() }
      expect(verdictOf(turned, now, by).kind).to.equal(verdictOf(e, now, by).kind)
    }))
})

describe('a pod that nothing leads to', () => {
  const nothing = (differs: Partial<Evidence> = {}) =>
    isUnlisted(evidence({ holders: [], isAbsent: true, ...differs }))
  const at = (differs: Parameters<typeof gatewayEvidence>[1]) => ({
    gateways: [gatewayEvidence('gw-1', differs)]
  })

  it('is listed nowhere in an inventory from after its end, whether gateways answer or not', () => {
    expect(nothing()).to.equal(true)
    expect(nothing({ gateways: [] })).to.equal(true)
    const seen = { observation: observation(), barrier: barrier({ entry: 'draining' }) }
    expect(nothing(at(seen))).to.equal(true)
  })

  it('has no sign of the contrary', () => {
    const signs: Record<string, Partial<Evidence>> = {
      'an older inventory': { isAbsent: false },
      'a holder': { holders: [holderEvidence('upstreams/web', { state: 'removed', removedAt: 30 })] },
      'a hidden place': { hiddenBy: [{ holder: 'routes/r', why: 'a name', change: '' }] },
      'a read of a gateway': at({ observation: observation({ stillListed: true }) }),
      'a request in flight': at({ barrier: barrier({ inflight: inflight(1) }) }),
      'a websocket': at({ barrier: barrier({ inflight: inflight(0, { upgraded: 1 }) }) }),
      'a worker that has a place for it': at({
        barrier: barrier({ word: { ...SAID, l4: false, places: 1 } })
      })
    }
    for (const [sign, differs] of Object.entries(signs)) expect(nothing(differs), sign).to.equal(false)
  })
})
