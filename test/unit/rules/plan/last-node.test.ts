import { expect } from 'chai'
import { begin } from '../../../../agent/rules/drain/step.ts'
import type { HolderNode } from '../../../../agent/rules/plan/holder.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder, node } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const ENDING = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
const UNREADY = pod('b', { ips: ['10.0.0.2'], ready: false })
const READY = pod('c', { ips: ['10.0.0.3'] })

/** Returns the nodes that the plan removes from a holder in which only an ending pod serves. */
function leaves(...nodes: readonly (string | HolderNode)[]): readonly string[] {
  const drains = drainsOf([begin(seen(ENDING), 0, DRAIN_SETTINGS)!])
  const settings = { dryRun: false }
  const web = holder('web', [], { nodes: nodes.map(each => (typeof each === 'string' ? node(each) : each)) })
  const { changes } = plan(worldOf([web], [ENDING, UNREADY, READY]), drains, settings)
  return changes.flatMap(change => change.nodes.map(({ key }) => key))
}

describe('a node that ends while no other serves', () => {
  it('stays', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.2:80')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80=0')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80')).to.deep.equal([])
  })

  it('stays beside a standby that serves: the entry may lead to successors, which come first (A7)', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.3:80=0')).to.deep.equal([])
    const backup = { ...node('10.0.0.3:80'), raw: { host: '10.0.0.3', port: 80, weight: 1, priority: -1 } }
    expect(leaves('10.0.0.1:80', backup)).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.3:80=0')).to.deep.equal(['10.0.0.1:80'])
  })
})

describe('a node whose address another pod may have by now', () => {
  it('stays, and nodes whose address is certain are removed', () => {
    const [a, b] = [
      pod('a', { ips: ['10.0.0.1'], ...terminating(0) }),
      pod('b', { ips: ['10.0.0.2'], ...terminating(0) })
    ]
    const drains = drainsOf([a, b].map(p => begin(seen(p), 0, DRAIN_SETTINGS)!))
    const world = worldOf([holder('web', ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'])], [a, b])
    const settings = { dryRun: false, unsure: new Set([a.uid]) }
    const { changes, kept } = plan(world, drains, settings)
    expect(changes.map(({ nodes }) => nodes.map(({ key }) => key))).to.deep.equal([['10.0.0.2:80']])
    expect(kept).to.deep.equal([
      { holder: 'upstreams/web', node: '10.0.0.1:80', uid: a.uid, why: 'address-unknown' }
    ])
  })
})
