import { expect } from 'chai'
import { createHookWitnesses } from '../../../../agent/round/hold/hook-witnesses.ts'
import { hook } from '../../../build/drain.ts'
import { pod } from '../../../build/pod.ts'

describe('hooks as witnesses', () => {
  const web = pod('web-1', { graceMs: 30_000 })
  const called = (at: number, of = web) => ({ ...hook(of), receivedAt: at })

  it('keep the first of several calls, for the grace from the last', () => {
    const witnesses = createHookWitnesses()
    witnesses.add(called(1000), web)
    witnesses.add(called(5000), web)
    expect(witnesses.at(web, 34_999)).to.equal(1000)
    expect(witnesses.at(web, 35_000)).to.equal(undefined)
  })

  it('start over after the grace, and after a restart', () => {
    const witnesses = createHookWitnesses()
    witnesses.add(called(1000), web)
    witnesses.add(called(40_000), web)
    expect(witnesses.at(web, 41_000)).to.equal(40_000)
    const again = { ...web, restarts: 1 }
    expect(witnesses.at(again, 41_000)).to.equal(undefined)
    witnesses.add(called(50_000), again)
    expect(witnesses.at(again, 51_000)).to.equal(50_000)
  })

  it('are bounded in number: the oldest are forgotten', () => {
    const witnesses = createHookWitnesses()
    const pods = Array.from({ length: 10_001 }, (_, i) => pod(`web-${i}`))
    for (const each of pods) witnesses.add(called(1000, each), each)
    const known = pods.map(each => witnesses.at(each, 1001) !== undefined)
    expect([known[0], known[1], known.at(-1)]).to.deep.equal([false, true, true])
  })
})
