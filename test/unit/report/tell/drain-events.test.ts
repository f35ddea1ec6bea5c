import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import { emitEvents } from '../../../../agent/report/tell/events.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { waitingDrain } from '../../../build/snapshot.ts'

describe('emitEvents', () => {
  const WAITING = waitingDrain()
  const UNDONE: Drain = { ...WAITING, phase: 'undone', at: 1, why: 'the container is back' }
  const memory = createMemories().of(WAITING.uid)

  const setUp = () => {
    const clock = manualClock()
    const said: Drain['uid'][] = []
    let leads = false
    const observer = emitEvents({ add: drain => void said.push(drain.uid) }, { leads: () => leads }, clock)
    return {
      clock,
      said,
      lead: (does: boolean) => (leads = does),
      ends: () => observer.drain?.(WAITING, UNDONE, memory),
      begins: () => observer.drain?.(undefined, WAITING, memory),
      forgotten: () => observer.drain?.(UNDONE, undefined, memory),
      round: () => observer.round?.(1)
    }
  }

  it('reports once per drain, by the leader, when the drain is over', () => {
    const { said, lead, begins, ends, forgotten, round } = setUp()
    lead(true)
    begins()
    expect(said).to.deep.equal([])
    ends()
    forgotten()
    round()
    expect(said).to.deep.equal([WAITING.uid])
  })

  it('a new leader reports earlier drains that were not reported', () => {
    const { clock, said, lead, ends, round } = setUp()
    ends()
    clock.advance(15_000)
    round()
    expect(said).to.deep.equal([])
    lead(true)
    round()
    round()
    expect(said).to.deep.equal([WAITING.uid])
  })

  it('leaves a drain to its leader if that agent is still alive', () => {
    const { clock, said, lead, ends, round } = setUp()
    ends()
    clock.advance(20_000)
    round()
    lead(true)
    round()
    expect(said).to.deep.equal([])
  })

  it('keeps a bounded number of drains', () => {
    const { said, lead, ends, round } = setUp()
    for (let i = 0; i < 1500; i++) ends()
    lead(true)
    round()
    expect(said).to.have.length(1000)
  })
})
