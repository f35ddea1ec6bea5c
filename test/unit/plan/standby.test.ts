import { expect } from 'chai'
import { begin } from '../../../agent/drain/step.ts'
import { standbysFor, standbyWords } from '../../../agent/plan/standby.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'
import { worldOf } from '../../build/world.ts'

const ENDING = ['a', 'b'].map((name, i) => pod(name, { ips: [`10.0.0.${i + 1}`], ...terminating(0) }))
const READY = ['c', 'd'].map((name, i) => pod(name, { ips: [`10.0.0.${i + 3}`] }))
const UNREADY = pod('e', { ips: ['10.0.0.5'], ready: false })

/** Who takes over from 10.0.0.1 in a holder of these nodes. */
function names(...nodes: readonly string[]): readonly string[] | undefined {
  const drains = drainsOf(ENDING.map(each => begin(seen(each), 0, DRAIN_SETTINGS)!))
  const world = worldOf([], [...ENDING, ...READY, UNREADY])
  return standbysFor('10.0.0.1:80', holder('web', nodes), world, drains)?.names
}

describe('who takes over from the last node with a weight', () => {
  it('are those of weight 0 that serve, by the names of their pods', () => {
    expect(names('10.0.0.1:80', '10.0.0.3:80=0')).to.deep.equal(['shop/c'])
    expect(names('10.0.0.3:80=0', '10.0.0.4:80=0', '10.0.0.5:80=0')).to.deep.equal(['shop/c', 'shop/d'])
    expect(names('10.0.0.1:80', '192.0.2.1:80=0')).to.deep.equal(['192.0.2.1:80'])
  })

  it('is nobody while another node with a weight stays, whether it serves or not', () => {
    expect(names('10.0.0.1:80', '10.0.0.4:80', '10.0.0.3:80=0')).to.equal(undefined)
    expect(names('10.0.0.1:80', '10.0.0.5:80', '10.0.0.3:80=0')).to.equal(undefined)
  })

  it('does not count those that end, too', () => {
    expect(names('10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80=0')).to.deep.equal(['shop/c'])
    expect(names('10.0.0.1:80', '10.0.0.2:80=0')).to.equal(undefined)
  })

  it('is nobody where none of weight 0 serves', () => {
    expect(names('10.0.0.1:80', '10.0.0.5:80=0')).to.equal(undefined)
  })

  it('is said in a sentence that is not too long', () => {
    expect(standbyWords([])).to.equal('')
    expect(standbyWords([{ holder: 'upstreams/web', names: ['shop/c', 'shop/d'] }])).to.equal(
      '; no node with a weight is left in upstreams/web: its standby shop/c and 1 more of weight 0 takes over'
    )
  })
})
