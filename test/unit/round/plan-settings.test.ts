import { expect } from 'chai'
import type { PodUid } from '../../../agent/rules/drain/facts.ts'
import { createPlanSettings } from '../../../agent/round/gather/sources.ts'
import { barrier as reading } from '../../build/evidence.ts'

const UID = 'uid-1' as PodUid
const REFUSED = reading({ problem: 'refused', fit: false })

/** Returns for each round whether some gateway never had a barrier. A round has one reading for each gateway. */
function unbarred(rounds: readonly (readonly unknown[])[], doubt = ''): readonly (boolean | undefined)[] {
  let now: readonly unknown[] = []
  const settings = createPlanSettings({ dryRun: false }, {
    mode: { current: () => ({ mode: 'etcd' }) },
    cluster: { gateways: () => now.map((_, i) => ({ id: String(i) })) },
    barrier: {
      reading: (_: unknown, id: string) => now[Number(id)],
      state: (id: string) => ({ status: now[Number(id)] }),
      doubt: () => doubt
    }
  } as never)
  return rounds.map(readings => {
    now = readings
    return settings(new Map([[UID, {} as never]]), new Set()).unbarred
  })
}

describe('the state of the barrier in a plan', () => {
  it('is there if every gateway has answered, or is about to', () => {
    expect(unbarred([[reading(), reading()], [reading(), undefined], []])).to.deep.equal([
      false,
      false,
      false
    ])
  })

  it('is missing if one gateway never had a usable one', () => {
    expect(unbarred([[reading(), REFUSED]])).to.deep.equal([true])
    expect(unbarred([[reading({ fit: false })]])).to.deep.equal([true])
    expect(unbarred([[reading()]], 'a load balancer')).to.deep.equal([true])
  })

  it('is still there in a gateway that had one and is unfit or silent for a while', () => {
    expect(unbarred([[reading()], [reading({ fit: false })], [REFUSED]])).to.deep.equal([false, false, false])
    expect(unbarred([[REFUSED], [reading()], [REFUSED]])).to.deep.equal([true, false, false])
  })
})
