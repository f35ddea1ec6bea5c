import { expect } from 'chai'
import { begin } from '../../../../agent/rules/drain/step.ts'
import { standbysFor, standbyWords } from '../../../../agent/rules/plan/standby.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const ENDING = ['a', 'b'].map((name, i) => pod(name, { ips: [`10.0.0.${i + 1}`], ...terminating(0) }))
const READY = ['c', 'd'].map((name, i) => pod(name, { ips: [`10.0.0.${i + 3}`] }))
const UNREADY = pod('e', { ips: ['10.0.0.5'], ready: false })

/** Returns the standbys that take over from 10.0.0.1 in a holder of these nodes. */
function names(...nodes: readonly string[]): readonly string[] | undefined {
  const drains = drainsOf(ENDING.map(each => begin(seen(each), 0, DRAIN_SETTINGS)!))
  const world = worldOf([], [...ENDING, ...READY, UNREADY])
  return standbysFor('10.0.0.1:80', holder('web', nodes), world, drains)?.names
}

describe('standbys that take over from the last node with a weight', () => {
  it('are the serving nodes of weight 0, by the names of their pods', () => {
    expect(names('10.0.0.1:80', '10.0.0.3:80=0')).to.deep.equal(['shop/c'])
    expect(names('10.0.0.3:80=0', '10.0.0.4:80=0', '10.0.0.5:80=0')).to.deep.equal(['shop/c', 'shop/d'])
    expect(names('10.0.0.1:80', '192.0.2.1:80=0')).to.deep.equal(['192.0.2.1:80'])
  })

  it('are none while another node with a weight stays, whether it serves or not', () => {
    expect(names('10.0.0.1:80', '10.0.0.4:80', '10.0.0.3:80=0')).to.equal(undefined)
    expect(names('10.0.0.1:80', '10.0.0.5:80', '10.0.0.3:80=0')).to.equal(undefined)
  })

  it('do not include nodes that are ending too', () => {
    expect(names('10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80=0')).to.deep.equal(['shop/c'])
    expect(names('10.0.0.1:80', '10.0.0.2:80=0')).to.equal(undefined)
  })

  it('are none if no node of weight 0 serves', () => {
    expect(names('10.0.0.1:80', '10.0.0.5:80=0')).to.equal(undefined)
  })

  it('are reported in a sentence of limited length', () => {
    expect(standbyWords([])).to.equal('')
    expect(standbyWords([{ holder: 'upstreams/web', names: ['shop/c', 'shop/d'] }])).to.equal(
      '; no node with a weight is left in upstreams/web: its standby shop/c and 1 more of weight 0 takes over'
    )
  })
})
