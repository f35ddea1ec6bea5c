import { expect } from 'chai'
import { HOLD_ALL } from '../../../../agent/rules/proof/proof.ts'
import { isOfOtherNamespace, objectOf } from '../../../../agent/rules/plan/holder.ts'
import { letGoOf, type ListedIn } from '../../../../agent/round/entries/seal-decision.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'

const POD = pod('web-1', { namespace: 'shop', ips: ['10.0.0.1'] })
const listed = (
  id: string,
  namespace: string | undefined,
  nodes: readonly string[],
  removedAt?: number
): ListedIn => ({
  holder: holder(id, nodes, namespace === undefined ? {} : { namespace }),
  removedAt
})
const OWN = listed('own', 'shop', ['10.0.0.1:80', '10.0.0.3:80'])
const HAND = listed('hand', undefined, ['10.0.0.1:80'])
const EVIL = listed('evil', 'evil', ['10.0.0.1:80', '10.0.0.9:80'])

describe('holders of other namespaces', () => {
  it('are those that are known to be of another one', () => {
    expect([OWN, HAND, EVIL].map(one => isOfOtherNamespace(POD, one.holder))).to.deep.equal([
      false,
      false,
      true
    ])
  })

  it('have one name with the places of workers', () => {
    const names = [
      'upstreams/1',
      'routes/1/upstream',
      'routes/1/plugins/traffic-split/0/1',
      'routes/1/traffic-split'
    ]
    expect(names.map(objectOf)).to.deep.equal(['upstreams/1', 'routes/1', 'routes/1', 'routes/1'])
  })

  it('are let go where they list no other node, and no other place is', () => {
    const letGo = letGoOf(POD, [OWN, HAND, EVIL], 0)
    const asked = ['upstreams/evil', 'upstreams/own', 'upstreams/hand', 'upstreams/unknown']
    expect(asked.map(name => letGo.place(name, 1))).to.deep.equal([true, false, false, false])
    expect(letGoOf(POD, [OWN, HAND], 0)).to.equal(HOLD_ALL)
  })

  it('are let go where only a node of theirs is left, unless the pod’s own namespace lists that node too', () => {
    const letGo = letGoOf(POD, [OWN, EVIL], 0)
    expect(letGo.others(['10.0.0.9:80'])).to.equal(true)
    expect(letGo.others(['10.0.0.3:80'])).to.equal(false)
    expect(letGo.others(['10.0.0.9:80', '10.0.0.8:80'])).to.equal(false)
    const both = listed('both', 'shop', ['10.0.0.1:80', '10.0.0.9:80'])
    expect(letGoOf(POD, [both, EVIL], 0).others(['10.0.0.9:80'])).to.equal(false)
  })

  it('hold it as before if words may leave a place of its own without a name, until its own holders have dropped it', () => {
    const own = (removedAt?: number) => letGoOf(POD, [{ ...OWN, removedAt }, EVIL], 2000)
    expect(own().place('upstreams/evil', 15)).to.equal(true)
    expect(own().place('upstreams/evil', 16)).to.equal(false)
    expect(own(1500).place('upstreams/evil', 16)).to.equal(false)
    expect(own(1000).place('upstreams/evil', 16)).to.equal(true)
    expect(own(1000).place('upstreams/own', 16)).to.equal(false)
    // The same rule holds for places whose other choices the words leave out (`cut`).
    expect([own(), own(1500), own(1000)].map(({ cut }) => cut)).to.deep.equal([false, false, true])
  })
})
