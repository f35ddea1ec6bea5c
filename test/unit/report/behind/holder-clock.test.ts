import { expect } from 'chai'
import { holderClock, QUIET } from '../../../../agent/report/behind/differences.ts'
import { firstSeen } from '../../../../agent/rules/members/behind.ts'
import { holder } from '../../../build/holder.ts'

const A = '10.0.0.1:80'
const B = '10.0.0.2:80'

describe('the clock of a holder', () => {
  const web = holder('web', [A])
  const clocks = (nodes: ReadonlyMap<string, number>) => ({
    ...firstSeen(1, [], 0),
    nodes,
    owes: nodes.size === 0 ? undefined : Math.min(...nodes.values())
  })
  const at = (nodes: ReadonlyMap<string, number>, readAt: number, isSynced = false) =>
    holderClock({ holder: web, clocks: clocks(nodes) }, readAt, () => isSynced)

  it('is quiet while nothing differs, and until a reading that began after the change', () => {
    expect(at(new Map(), 10)).equal(QUIET)
    expect(at(new Map([[B, 10]]), 10)).equal(QUIET)
    expect(at(new Map([[B, 10]]), 11)).not.equal(QUIET)
  })

  it('names unlisted nodes and listed ones that are not ready, since the earliest change', () => {
    const found = at(
      new Map([
        [A, 8],
        [B, 5]
      ]),
      20
    )
    expect(found.missing).eql([{ node: B, since: 5 }])
    expect(found.notReady).eql([{ node: A, since: 8 }])
    expect(found.behind).eql({ since: 5, owner: 5, cause: 'owner', gateways: [] })
  })

  it('blames the agent if it fills the holder itself', () => {
    expect(at(new Map([[B, 5]]), 20, true).behind?.cause).equal('sync')
  })
})
