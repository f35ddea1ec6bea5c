import { expect } from 'chai'
import {
  firstSeen,
  seenAtGateways,
  seenAtOwner,
  type GatewayHas
} from '../../../../agent/rules/members/behind.ts'

const BOTH = ['apisix-0', 'apisix-1']
const has = (name: string, at: number): GatewayHas => ({ name, at, why: '' })
const lacks = (name: string, why: string): GatewayHas => ({ name, at: undefined, why })
const differing = (revision: number, ...nodes: (readonly [string, number])[]) => ({
  revision,
  differs: new Map(nodes),
  gained: false,
  stale: false
})

describe('the clocks of a holder', () => {
  const inStep = seenAtGateways(firstSeen(40, BOTH, 1000), [has('apisix-0', 900), has('apisix-1', 900)])

  it('know no lag of a revision that was there before the agent', () => {
    expect(inStep.waiting.size).to.equal(0)
    expect(inStep.lags).to.deep.equal([])
  })

  it('run from the change in Kubernetes until each gateway has the revision that answers it', () => {
    let clocks = seenAtOwner(inStep, differing(40, ['b', 2000]), BOTH, 2050)
    expect([...clocks.nodes]).to.deep.equal([['b', 2000]])
    // A later check keeps the time at which the difference began.
    clocks = seenAtOwner(clocks, differing(40, ['b', 2300]), BOTH, 2300)
    expect([...clocks.nodes]).to.deep.equal([['b', 2000]])
    clocks = seenAtOwner(clocks, differing(41), BOTH, 2500)
    expect(clocks.nodes.size).to.equal(0)
    clocks = seenAtGateways(clocks, [has('apisix-0', 2510), lacks('apisix-1', 'revision 40')])
    expect(clocks.lags).to.deep.equal([{ gateway: 'apisix-0', ms: 510 }])
    expect(clocks.waiting.get('apisix-1')).to.include({ since: 2000, why: 'revision 40' })
    clocks = seenAtGateways(clocks, [has('apisix-0', 2510), has('apisix-1', 2900)])
    expect(clocks.lags.map(({ ms }) => ms)).to.deep.equal([510, 900])
    expect(clocks.waiting.size).to.equal(0)
  })

  it('keep the oldest change that a gateway lacks, over any number of writes', () => {
    let clocks = seenAtOwner(inStep, differing(40, ['b', 2000]), BOTH, 2000)
    clocks = seenAtOwner(clocks, differing(41, ['c', 3000]), BOTH, 3000)
    clocks = seenAtGateways(clocks, [has('apisix-0', 3010), lacks('apisix-1', 'revision 40')])
    clocks = seenAtOwner(clocks, differing(42), BOTH, 4000)
    expect(clocks.waiting.get('apisix-0')?.since).to.equal(3000)
    expect(clocks.waiting.get('apisix-1')?.since).to.equal(2000)
  })

  it('run for a write without a known reason too, but that is no lag', () => {
    let clocks = seenAtOwner(inStep, differing(41), BOTH, 2000)
    expect(clocks.waiting.get('apisix-0')).to.include({ since: 2000, counts: false })
    clocks = seenAtGateways(clocks, [has('apisix-0', 2100), has('apisix-1', 2100)])
    expect(clocks.lags).to.deep.equal([])
  })

  it('stop if the difference is over without a write, and for a gateway that has gone', () => {
    let clocks = seenAtOwner(inStep, differing(40, ['b', 2000]), BOTH, 2000)
    clocks = seenAtOwner(clocks, differing(40), BOTH, 2100)
    expect([clocks.nodes.size, clocks.waiting.size]).to.deep.equal([0, 0])
    clocks = seenAtOwner(clocks, differing(41), BOTH, 2200)
    clocks = seenAtGateways(clocks, [lacks('apisix-0', 'revision 40')])
    expect([...clocks.waiting.keys()]).to.deep.equal(['apisix-0'])
  })

  it('keep the oldest change that the owner has not written, over any number of rollouts, until it adds a node (E3)', () => {
    const stale = { stale: true }
    let clocks = seenAtOwner(inStep, differing(40, ['b', 2000]), BOTH, 2000)
    // The second rollout replaces the pod of the first: for a moment nothing is missing, and the pods that are listed are gone.
    clocks = seenAtOwner(clocks, { ...differing(40), ...stale }, BOTH, 3000)
    expect(clocks.owes).to.equal(2000)
    clocks = seenAtOwner(clocks, { ...differing(40, ['c', 4000]), ...stale }, BOTH, 4000)
    expect(clocks.owes).to.equal(2000)
    // The agent itself removes a ghost. The owner has still written nothing.
    clocks = seenAtOwner(clocks, differing(41, ['c', 4000]), BOTH, 5000)
    expect(clocks.owes).to.equal(2000)
    clocks = seenAtOwner(clocks, { ...differing(42, ['d', 5500]), gained: true }, BOTH, 6000)
    expect(clocks.owes, 'written, but for the newest').to.equal(5500)
    expect(seenAtOwner(clocks, differing(42), BOTH, 7000).owes, 'the change was taken back').to.equal(
      undefined
    )
    expect(seenAtOwner(clocks, { ...differing(43), gained: true }, BOTH, 7000).owes).to.equal(undefined)
  })

  it('do not blame a gateway that was not read since the write', () => {
    const clocks = seenAtOwner(inStep, differing(41), BOTH, 2000)
    const unread = lacks('apisix-0', '')
    expect(seenAtGateways(clocks, [unread]).waiting.get('apisix-0')?.why).to.equal('')
  })
})
