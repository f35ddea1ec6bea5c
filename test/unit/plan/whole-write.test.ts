import { expect } from 'chai'
import type { Drain } from '../../../agent/drain/drain.ts'
import type { PodUid } from '../../../agent/drain/facts.ts'
import { begin } from '../../../agent/drain/step.ts'
import type { Holder } from '../../../agent/plan/holder.ts'
import { plan } from '../../../agent/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'
import { worldOf } from '../../build/world.ts'

const ENDING = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
const SPLIT = { path: ['plugins', 'traffic-split', 'rules', 0] } as const

/** What becomes of the node of a pod that ends: written, or why not. */
function fate(differs: Partial<Holder>, barred: boolean, phase?: 'gone'): string {
  const begun = begin(seen(ENDING), 0, DRAIN_SETTINGS)!
  const drain = phase ? ({ ...begun, phase, at: 1 } as Drain) : begun
  const listed = holder('web', ['10.0.0.1:80', '10.0.0.2:80'], differs)
  const unbarred = new Set<PodUid>(barred ? [] : [ENDING.uid])
  const settings = { dryRun: false, deferMs: 0, unbarred }
  const world = worldOf([listed], [ENDING, pod('b', { ips: ['10.0.0.2'] })])
  const { changes, kept } = plan(world, drainsOf([drain]), 10, settings)
  return changes.length > 0 ? 'written' : (kept[0]?.why ?? 'nothing')
}

describe('what could only be written whole', () => {
  for (const [name, differs] of [
    ['a consumer', { resource: 'consumers' as const, ...SPLIT }],
    ['a rule of a plugin', SPLIT]
  ] as const)
    it(`${name} is left alone while the barrier keeps requests away, and written when the pod is gone`, () => {
      expect(fate(differs, true)).to.equal('whole-write')
      expect(fate(differs, true, 'gone')).to.equal('written')
    })

  it('is written where no barrier keeps requests away', () => {
    expect(fate(SPLIT, false)).to.equal('written')
  })

  it('is no upstream, of which the nodes alone are written', () => {
    expect(fate({}, true)).to.equal('written')
    expect(fate({ resource: 'routes', path: ['upstream'] }, true)).to.equal('written')
  })
})
