import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'
import { begin } from '../../../../agent/rules/drain/step.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { wholeWrite } from '../../../../agent/rules/plan/policies.ts'

import { DRAIN_SETTINGS, drainsOf, proven, seen, waiting } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const ENDING = pod('a', { ips: ['10.0.0.1'], ...terminating(0) })
const SPLIT = { path: ['plugins', 'traffic-split', 'rules', 0] } as const
const SEAL_MS = 1000
const WHOLE: readonly (readonly [string, Partial<Holder>])[] = [
  ['a consumer', { resource: 'consumers', ...SPLIT }],
  ['a rule of a plugin', SPLIT],
  ['a list of nodes', { form: 'array' }]
]

interface Given {
  readonly differs: Partial<Holder>
  readonly barred?: boolean
  readonly drain?: Partial<Drain>
  readonly now?: number
}

const settings = (barred: boolean) => ({
  dryRun: false,
  deferMs: 0,
  unbarred: new Set<PodUid>(barred ? [] : [ENDING.uid])
})
const drainsWith = (differs: Partial<Drain> = {}) =>
  drainsOf([{ ...begin(seen(ENDING), 0, DRAIN_SETTINGS)!, ...differs } as Drain])

/** Returns the plan's result for the node of an ending pod: that it is written, or why it is not. */
function fate({ differs, barred = true, drain, now = 10 }: Given): string {
  const listed = holder('web', ['10.0.0.1:80', '10.0.0.2:80'], differs)
  const world = worldOf([listed], [ENDING, pod('b', { ips: ['10.0.0.2'] })])
  const { changes, kept } = plan(world, drainsWith(drain), now, settings(barred))
  return changes.length > 0 ? 'written' : (kept[0]?.why ?? 'nothing')
}

describe('a holder that can only be written whole', () => {
  for (const [name, differs] of WHOLE) {
    it(`${name} is left alone once every gateway has sealed it, and written when the pod is gone, or at its deadline`, () => {
      const now = SEAL_MS
      const sealed = { verdict: waiting({ barred: true }) }
      expect(fate({ differs, drain: sealed, now })).to.equal('whole-write')
      expect(fate({ differs, drain: sealed, now: 24_999 })).to.equal('whole-write')
      expect(fate({ differs, drain: sealed, now: 25_000 })).to.equal('written')
      expect(fate({ differs, drain: { phase: 'proven', verdict: proven() }, now })).to.equal('whole-write')
      expect(fate({ differs, drain: { phase: 'gone', verdict: proven() }, now })).to.equal('written')
    })

    it(`${name} is given time to be sealed, and is written if it cannot be sealed`, () => {
      expect(fate({ differs, now: SEAL_MS - 1 })).to.equal('whole-write')
      expect(fate({ differs, now: SEAL_MS })).to.equal('written')
    })
  }

  it('is written if no barrier keeps requests away, or if the answer rests on less', () => {
    expect(fate({ differs: SPLIT, barred: false })).to.equal('written')
    const observed = { phase: 'proven', verdict: proven({ grade: 'observed' }) } as const
    expect(fate({ differs: SPLIT, drain: observed, now: SEAL_MS })).to.equal('written')
  })

  it('is written if it is proxied as L4, which the barrier does not cover', () => {
    expect(fate({ differs: { form: 'array', l4: true } })).to.equal('written')
  })

  it('is never a map of nodes, in which one node can be written alone', () => {
    expect(fate({ differs: {} })).to.equal('written')
    expect(fate({ differs: { resource: 'routes', path: ['upstream'] } })).to.equal('written')
  })

  it('is not sealed for a drain that was undone, or is not known', () => {
    const listed = holder('web', ['10.0.0.1:80'], SPLIT)
    const change = {
      holder: listed,
      nodes: [{ key: '10.0.0.1:80', uid: ENDING.uid }]
    } as const
    const all = { changes: [change], kept: [] }
    const context = { world: worldOf([listed], []), now: SEAL_MS, settings: settings(true) }
    const undone = drainsWith({ phase: 'undone', at: 1, why: '' })
    expect(wholeWrite(all, { ...context, drains: undone })).to.deep.equal(all)
    expect(wholeWrite(all, { ...context, drains: new Map() })).to.deep.equal(all)
  })
})
