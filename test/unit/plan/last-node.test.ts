import { expect } from 'chai'
import { begin } from '../../../agent/drain/step.ts'
import { plan } from '../../../agent/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'
import { worldOf } from '../../build/world.ts'

const ENDING = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
const UNREADY = pod('b', { ips: ['10.0.0.2'], ready: false })
const READY = pod('c', { ips: ['10.0.0.3'] })

/** What leaves a holder in which nothing serves but a pod that ends. */
function leaves(...nodes: readonly string[]): readonly string[] {
  const drains = drainsOf([begin(seen(ENDING), 0, DRAIN_SETTINGS)!])
  const settings = { dryRun: false, deferMs: 0 }
  const { changes } = plan(worldOf([holder('web', nodes)], [ENDING, UNREADY, READY]), drains, 1000, settings)
  return changes.flatMap(change => change.nodes.map(({ key }) => key))
}

describe('a node that ends while no other serves', () => {
  it('stays where it gets requests', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.2:80')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0')).to.deep.equal([])
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80=0')).to.deep.equal([])
  })

  it('goes where its weight is 0 and another draws the requests: to keep it would help nobody', () => {
    expect(leaves('10.0.0.1:80=0', '10.0.0.2:80')).to.deep.equal(['10.0.0.1:80'])
  })

  it('goes where a standby of weight 0 serves, which draws the requests from then on', () => {
    expect(leaves('10.0.0.1:80', '10.0.0.3:80=0')).to.deep.equal(['10.0.0.1:80'])
    expect(leaves('10.0.0.1:80', '10.0.0.2:80=0')).to.deep.equal([])
    // One that does not serve would draw them in place of the standby.
    expect(leaves('10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80=0')).to.deep.equal([])
  })

  it('is the same one for two agents, whenever each of them has seen the ends', () => {
    const pods = ['a', 'b'].map((name, i) => pod(name, { ips: [`10.0.0.${i + 1}`], ...terminating(0) }))
    const leftBy = (...since: readonly number[]) => {
      const drains = drainsOf(pods.map((one, i) => begin(seen(one), since[i]!, DRAIN_SETTINGS)!))
      const world = worldOf([holder('web', ['10.0.0.1:80', '10.0.0.2:80'])], pods)
      return plan(world, drains, 1000, { dryRun: false, deferMs: 0 }).kept.map(({ node }) => node)
    }
    expect(leftBy(-5, -1)).to.deep.equal(leftBy(-1, -5))
  })
})
