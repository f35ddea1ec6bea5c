import { expect } from 'chai'
import * as fc from 'fast-check'

import type { BarrierReading, Evidence, Observation } from '../../../../agent/rules/proof/evidence.ts'
import { isUnlisted, prove } from '../../../../agent/rules/proof/proof.ts'
import { GRADES, atLeast } from '../../../../agent/rules/drain/drain.ts'
import {
  PROOF_SETTINGS,
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
    inventoryAt: maybe(time),
    absentSince: maybe(time),
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
          acceptedAt: time,
          observable: fc.constantFrom(true, true, false)
        })
        .map(differs => holderEvidence('upstreams/web', differs)),
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

const drain = { since: 0, deadline: 25_000, pod: pod('web-1'), witnesses: { deletion: 0 } }
const minimumArb = fc.constantFrom(...GRADES)
const law = (check: (evidence: Evidence, now: number, minimumGrade: (typeof GRADES)[number]) => void) =>
  fc.assert(fc.property(evidenceArb, fc.integer({ min: 0, max: 12_000 }), minimumArb, check), {
    numRuns: 2_000
  })

const verdictOf = (evidence: Evidence, now: number, minimumGrade: (typeof GRADES)[number]) =>
  prove(evidence, drain, now, { ...PROOF_SETTINGS, minimumGrade })

/** Returns variants of the evidence that are better in one part, without a new gateway or a new doubt. */
const improvements = (e: Evidence): Evidence[] => [
  { ...e, gatewaysKnown: true },
  {
    ...e,
    holders: e.holders.map(h => ({
      ...h,
      state: h.state === 'foreign' ? h.state : 'removed',
      observable: true
    }))
  },
  { ...e, inventoryAt: e.inventoryAt ?? 0, absentSince: e.absentSince ?? 0 },
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
  {
    ...e,
    gateways: e.gateways.map(g => ({
      ...g,
      barrier: g.barrier && barrier({ at: g.barrier.at })
    }))
  }
]

describe('laws of proof', () => {
  it('better evidence never makes a worse verdict', () =>
    law((e, now, minimum) => {
      const before = verdictOf(e, now, minimum)
      for (const better of improvements(e)) {
        const after = verdictOf(better, now, minimum)
        if (before.kind === 'proven') expect(after.kind).to.equal('proven')
        if (before.grade !== undefined) expect(atLeast(after.grade, before.grade)).to.equal(true)
      }
    }))

  it('time alone never makes a worse verdict, and changes nothing before `until`', () =>
    law((e, now, minimum) => {
      const before = verdictOf(e, now, minimum)
      const later = verdictOf(e, now + 700, minimum)
      if (before.kind === 'proven') expect(later.kind).to.equal('proven')
      if (before.grade !== undefined) expect(atLeast(later.grade, before.grade)).to.equal(true)
      if (before.kind === 'waiting' && !(before.until !== undefined && before.until <= now + 700)) {
        expect([later.kind, later.grade]).to.deep.equal([before.kind, before.grade])
      }
    }))

  it('a worse grade than the minimum never counts', () =>
    law((e, now, minimum) => {
      const verdict = verdictOf(e, now, minimum)
      if (verdict.kind === 'proven') expect(atLeast(verdict.grade, minimum)).to.equal(true)
    }))

  it('grade barrier means: every known gateway is fit, sealed, and idle after the seal', () =>
    law((e, now, minimum) => {
      const verdict = verdictOf(e, now, minimum)
      if (verdict.grade !== 'barrier') return
      expect(e.gatewaysKnown && e.gateways.length > 0).to.equal(true)
      for (const { barrier: b } of e.gateways) {
        expect(b).to.include({ fit: true, entry: 'sealed', readAfterSeal: true, problem: '' })
        expect(b?.inflight).to.include({ requests: 0 })
      }
    }))

  it('nothing is proven while a gateway is known to send requests; without the barrier, nor while a holder keeps the node', () =>
    law((e, now, minimum) => {
      const busy = e.gateways.some(({ barrier: b }) => b?.fit && b.problem === '' && b.inflight.requests > 0)
      const kept = e.holders.some(h => h.state === 'kept-last')
      const verdict = verdictOf(e, now, minimum)
      if (busy || (kept && verdict.grade !== 'barrier')) expect(verdict.kind).to.equal('waiting')
    }))

  it('a gateway whose barrier has answered for the drain is released by its own fit 0 after the seal, and by nothing else', () =>
    law((e, now, minimum) => {
      const owes = e.gateways.some(
        ({ barrier: b }) =>
          b?.binding &&
          !(b.fit && b.problem === '' && b.entry === 'sealed' && b.readAfterSeal && b.inflight.requests === 0)
      )
      if (owes) expect(verdictOf(e, now, minimum).kind).to.equal('waiting')
    }))

  it('the order of gateways and holders makes no difference to the verdict', () =>
    law((e, now, minimum) => {
      const turned = { ...e, gateways: e.gateways.toReversed(), holders: e.holders.toReversed() }
      const [a, b] = [verdictOf(e, now, minimum), verdictOf(turned, now, minimum)]
      expect([b.kind, b.grade]).to.deep.equal([a.kind, a.grade])
    }))
})

describe('a pod that nothing leads to', () => {
  const nothing = (differs: Partial<Evidence> = {}) =>
    isUnlisted(evidence({ holders: [], absentSince: 20, ...differs }))
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
    const word = {
      complete: true,
      said: 1,
      asked: 1,
      hidden: 0,
      sole: [],
      succeeded: [],
      others: [],
      cut: 0,
      tags: []
    }
    const signs: Record<string, Partial<Evidence>> = {
      'an older inventory': { absentSince: undefined },
      'a holder': { holders: [holderEvidence('upstreams/web', { state: 'removed', acceptedAt: 30 })] },
      'a hidden place': { hiddenBy: [{ holder: 'routes/r', why: 'a name', change: '', best: 'timer' }] },
      'a read of a gateway': at({ observation: observation({ stillListed: true }) }),
      'a request in flight': at({ barrier: barrier({ inflight: inflight(1) }) }),
      'a websocket': at({ barrier: barrier({ inflight: inflight(0, { upgraded: 1 }) }) }),
      'a worker that has a place for it': at({
        barrier: barrier({ word: { ...word, l4: false, places: 1 } })
      })
    }
    for (const [sign, differs] of Object.entries(signs)) expect(nothing(differs), sign).to.equal(false)
  })
})
