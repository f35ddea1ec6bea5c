import { expect } from 'chai'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { begin } from '../../../../agent/rules/drain/step.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

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
