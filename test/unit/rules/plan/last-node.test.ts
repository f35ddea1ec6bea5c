import { expect } from 'chai'
import { begin } from '../../../../agent/rules/drain/step.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const ENDING = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
const UNREADY = pod('b', { ips: ['10.0.0.2'], ready: false })
const READY = pod('c', { ips: ['10.0.0.3'] })

/** Returns the nodes that the plan removes from a holder in which only an ending pod serves. */
function leaves(...nodes: readonly string[]): readonly string[] {
  const drains = drainsOf([begin(seen(ENDING), 0, DRAIN_SETTINGS)!])
  const settings = { dryRun: false }
  const { changes } = plan(worldOf([holder('web', nodes)], [ENDING, UNREADY, READY]), drains, settings)
  return changes.flatMap(change => change.nodes.map(({ key }) => key))
}

describe('a node that ends while no other serves', () => {
  it('stays', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.2:80')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80=0')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80')).to.deep.equal([])
  })

  it('is removed if a standby of weight 0 serves, which then draws the requests', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.3:80=0')).to.deep.equal(['10.0.0.1:80'])
    expect(leaves('10.0.0.1:80', '10.0.0.2:80=0')).to.deep.equal([])
    // If the ending pod were removed, a node that does not serve would get the requests instead of the standby.
    expect(leaves('10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80=0')).to.deep.equal([])
  })
})
