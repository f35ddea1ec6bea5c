import { expect } from 'chai'
import { begin } from '../../../../agent/rules/drain/step.ts'
import type { Owner } from '../../../../agent/rules/plan/holder.ts'
import {
  UNKNOWN_OWNER,
  ownerLate,
  ownersTime,
  ownersTurn,
  ownerTook
} from '../../../../agent/rules/plan/owners-time.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'

const NOW = 1_000_000

describe('the time that an owner is given for its own removal', () => {
  it('is a second if nothing is known of the owner', () => {
    expect(ownersTime(UNKNOWN_OWNER, NOW)).to.equal(1000)
  })

  it('is twice the slowest of the last removals, and between a tenth of a second and a second', () => {
    const after = (...took: number[]) => ownersTime(took.reduce(ownerTook, UNKNOWN_OWNER), NOW)
    expect(after(70, 340, 90)).to.equal(680)
    expect(after(20)).to.equal(100)
    expect(after(900)).to.equal(1000)
    expect(after(400, ...Array.from({ length: 16 }, () => 100)), 'only the last').to.equal(200)
  })

  it('is none after the owner was late, for longer each time, and then the whole second again', () => {
    const once = ownerLate(ownerTook(UNKNOWN_OWNER, 70), NOW)
    expect([
      ownersTime(once, NOW),
      ownersTime(once, NOW + 9999),
      ownersTime(once, NOW + 10_000)
    ]).to.deep.equal([0, 0, 1000])
    const twice = ownerLate(once, NOW)
    expect([ownersTime(twice, NOW + 19_999), ownersTime(twice, NOW + 20_000)]).to.deep.equal([0, 1000])
    let never = twice
    for (let i = 0; i < 50; i++) never = ownerLate(never, NOW)
    expect(ownersTime(never, NOW + 600_000)).to.equal(1000)
    expect(ownersTime(ownerTook(twice, 70), NOW), 'it is back').to.equal(140)
  })

  it('counts from the start of the first drain, is bounded by the configuration, and only a controller gets it', () => {
    const ends = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
    const drains = drainsOf([begin(seen(ends), NOW, DRAIN_SETTINGS)!])
    const turn = (owner: Owner, deferMs = 2000, ownersMs?: (owner: Owner) => number) =>
      ownersTurn(
        {
          holder: { ...holder('web', ['10.0.0.1:80']), owner },
          nodes: [{ key: '10.0.0.1:80', uid: ends.uid }]
        },
        drains,
        { deferMs, ...(ownersMs && { ownersMs }) }
      )
    expect(turn('ingress-controller-2', 2000, () => 300)).to.equal(NOW + 300)
    expect(turn('ingress-controller-2', 200, () => 300)).to.equal(NOW + 200)
    expect(turn('ingress-controller-2', 0, () => 300)).to.equal(undefined)
    expect(turn('ingress-controller-2', 2000, () => 0)).to.equal(undefined)
    expect(turn('ingress-controller-2')).to.equal(undefined)
    expect(turn('unknown', 2000, () => 300)).to.equal(undefined)
  })

  it('is over if a pod no longer has a drain', () => {
    const nodes = [{ key: '10.0.0.1:80', uid: pod('a').uid }]
    const change = {
      holder: { ...holder('web', ['10.0.0.1:80']), owner: 'ingress-controller-2' as const },
      nodes
    }
    expect(ownersTurn(change, drainsOf([]), { deferMs: 2000, ownersMs: () => 300 })).to.be.below(NOW)
  })
})
