import { expect } from 'chai'
import { nodesAt } from '../../../../agent/rules/plan/holder.ts'
import { node } from '../../../build/holder.ts'

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
