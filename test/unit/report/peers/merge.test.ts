import { expect } from 'chai'
import * as fc from 'fast-check'
import { GRADES } from '../../../../agent/rules/drain/drain.ts'
import { joinDrains, joinLags } from '../../../../agent/report/peers/merge.ts'
import { anyLag, anyView, drainOf, provedOf } from '../../../build/shared.ts'

describe('one drain as several agents know it (D7)', () => {
  it('law: the order of the agents does not matter', () => {
    fc.assert(
      fc.property(anyView, anyView, (a, b) => {
        expect(joinDrains(a, b)).to.deep.equal(joinDrains(b, a))
      }),
      { numRuns: 2000 }
    )
    fc.assert(
      fc.property(anyLag, anyLag, (a, b) => {
        expect(joinLags(a, b)).to.deep.equal(joinLags(b, a))
      })
    )
  })

  it('law: the result does not depend on earlier exchanges between agents', () => {
    fc.assert(
      fc.property(anyView, anyView, anyView, (a, b, c) => {
        expect(joinDrains(joinDrains(a, b), c)).to.deep.equal(joinDrains(a, joinDrains(b, c)))
      }),
      { numRuns: 2000 }
    )
  })

  it('law: to hear the same again changes nothing', () => {
    fc.assert(
      fc.property(anyView, anyView, (a, b) => {
        const both = joinDrains(a, b)
        expect(joinDrains(both, a)).to.deep.equal(both)
        expect(joinDrains(both, both)).to.deep.equal(both)
      }),
      { numRuns: 500 }
    )
  })

  const worth = (grade: string | null | undefined) =>
    grade ? GRADES.length - GRADES.findIndex(one => one === grade) : 0

  it('law: a worse evidence never replaces a better one, and a later one never an earlier one', () => {
    fc.assert(
      fc.property(anyView, anyView, (a, b) => {
        const both = joinDrains(a, b)
        for (const one of [a, b]) {
          if (one.verdict?.kind === 'proven') expect(both.verdict?.kind).to.equal('proven')
          if (one.verdict?.kind === both.verdict?.kind)
            expect(worth(both.verdict?.grade)).to.be.at.least(worth(one.verdict?.grade))
          for (const step of ['sealedAt', 'confirmedAt', 'ackAt'] as const)
            if (one.moments[step] !== null) expect(both.moments[step]).to.be.at.most(one.moments[step])
          for (const { name, grade, at } of one.gateways) {
            const gateway = both.gateways.find(other => other.name === name)
            expect(worth(gateway?.grade)).to.be.at.least(worth(grade))
            if (gateway?.grade === grade && at !== undefined) expect(gateway?.at).to.be.at.most(at)
          }
        }
      }),
      { numRuns: 2000 }
    )
  })

  it('takes the proof of one agent, the answer of another, and the earliest moment of each step', () => {
    const proved = provedOf('web-1', 1_000_300)
    const answered = drainOf('web-1', {
      phase: 'expired',
      why: 'apisix-1 has not answered',
      moments: { seenAt: 1_000_240, hookAt: 1_000_260, ackAt: 1_000_900 }
    })
    const both = joinDrains(answered, proved)
    expect(both.phase).to.equal('gone')
    expect(both.verdict).to.deep.equal(proved.verdict)
    expect(both.why).to.equal(proved.why)
    expect(both.moments).to.include({
      seenAt: 1_000_240,
      hookAt: 1_000_260,
      confirmedAt: 1_000_300,
      ackAt: 1_000_900
    })
  })

  it('keeps the gateway that confirmed at each of two agents', () => {
    const seen = (name: string, at: number) => ({
      name,
      grade: 'barrier' as const,
      at,
      sealedAt: at - 1,
      why: ''
    })
    const not = (name: string) => ({
      name,
      grade: undefined,
      at: undefined,
      why: 'no connection to the barrier'
    })
    const both = joinDrains(
      drainOf('web-1', { gateways: [seen('apisix-0', 5), not('apisix-1')] }),
      drainOf('web-1', { gateways: [not('apisix-0'), seen('apisix-1', 9)] })
    )
    expect(both.gateways).to.deep.equal([seen('apisix-0', 5), seen('apisix-1', 9)])
  })
})
