import { expect } from 'chai'
import { nodesOf, nodesAt } from '../../../../agent/rules/plan/holder.ts'
import { pod } from '../../../build/pod.ts'
import { node } from '../../../build/holder.ts'

describe('nodesOf', () => {
  it('has 250 ports at most, as many as gateways deny (S14)', () => {
    const ports = Array.from({ length: 20_000 }, (_, i) => i + 1)
    expect(nodesOf(pod('web-1', { hostNetwork: true, containerPorts: ports }), [30_000])).to.have.length(250)
  })
})

describe('nodes at a host', () => {
  for (const size of [3, 40]) {
    const nodes = Array.from({ length: size }, (_, i) => node(`10.0.0.${i}:80`))
    nodes.splice(1, 0, node('10.0.0.2:81'))

    it(`are all nodes of the host, in the order of the list (${size} hosts)`, () => {
      expect(nodesAt(nodes, '10.0.0.2').map(({ key }) => key)).to.deep.equal(['10.0.0.2:81', '10.0.0.2:80'])
      expect(nodesAt(nodes, '10.0.0.9999')).to.deep.equal([])
    })

    it(`come from the given list, not from an earlier one (${size} hosts)`, () => {
      nodesAt(nodes, '10.0.0.2')
      expect(nodesAt(nodes.slice(2), '10.0.0.2').map(({ key }) => key)).to.deep.equal(['10.0.0.2:80'])
    })
  }
})
