import { expect } from 'chai'

import { nodesOf } from '../../../../agent/rules/plan/match.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'
import { applyPlan, worldOf } from '../../../build/world.ts'

describe('nodesOf', () => {
  it('is the bare addresses of a pod that has its own', () =>
    expect(nodesOf(pod('web-1', { ips: ['10.0.0.1', 'fd00::1'] }), [80])).to.deep.equal([
      '10.0.0.1',
      '[fd00::1]'
    ]))

  it('is address and port of a pod that shares its address, each once', () =>
    expect(nodesOf(pod('web-1', { hostNetwork: true, containerPorts: [80, 81] }), [81, 82])).to.deep.equal([
      '10.0.0.1:80',
      '10.0.0.1:81',
      '10.0.0.1:82'
    ]))

  it('is empty if a shared address has no known port: it must not cover other pods', () =>
    expect(nodesOf(pod('web-1', { hostNetwork: true, containerPorts: [] }), [])).to.deep.equal([]))
})

describe('worldOf', () => {
  const web = holder('web', ['10.0.0.1:80', '10.0.0.1:81', '10.0.0.2:80'])
  const world = worldOf([web], [pod('a', { ips: ['10.0.0.1'] }), pod('b', { ips: ['10.0.0.1', 'fd00::1'] })])

  it('finds a holder once, even if it lists several nodes of a host', () => {
    expect(world.holdersOf('10.0.0.1')).to.deep.equal([web])
    expect(world.holdersOf('10.0.0.9')).to.deep.equal([])
    expect([...world.holders()]).to.deep.equal([web])
  })

  it('finds every pod of an address', () => {
    expect(world.ownersOf('10.0.0.1').map(p => p.name)).to.deep.equal(['a', 'b'])
    expect(world.ownersOf('fd00::1').map(p => p.name)).to.deep.equal(['b'])
    expect(world.ownersOf('fd00::9')).to.deep.equal([])
    expect(world.portsOf(pod('a'))).to.deep.equal([])
  })

  it('is unchanged by an empty plan', () =>
    expect(applyPlan([web], { changes: [], kept: [] })).to.deep.equal([web]))
})
