import { expect } from 'chai'
import type { NodeKey } from '../../../agent/drain/facts.ts'
import type { Target } from '../../../agent/gateway/removal.ts'
import { createAmends } from '../../../agent/loop/amends.ts'
import type { Holder } from '../../../agent/plan/holder.ts'
import { holder } from '../../build/holder.ts'

const TARGET: Target = { resource: 'upstreams', id: 'web' }
const [OLD, STAYS, NEW] = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
const listing = (nodes: readonly NodeKey[], form: Holder['form'] = 'array') => holder('web', nodes, { form })

/** A world in which `expected` is what Kubernetes says. */
function world(differs: { surely?: boolean; expected?: readonly NodeKey[] } = {}) {
  const state = { now: 0, current: true, expected: differs.expected ?? [STAYS, NEW], stays: true }
  const amends = createAmends({
    expected: () => state.expected,
    staysAt: () => state.stays,
    isSurelyEnding: () => differs.surely !== false,
    isCurrent: () => state.current,
    now: () => state.now
  })
  const wrote = (before: Holder, answered: boolean, remove: readonly NodeKey[] = [OLD]) =>
    amends.wrote({
      target: TARGET,
      edits: [{ path: before.path, holder: before, remove: new Set(remove), add: [] }],
      answered
    })
  const put = (found: Holder | undefined = listing([STAYS])) =>
    amends.wishes(TARGET, found && [found]).flatMap(wish => wish.put.map(({ key }) => key))
  /** The object is due to be looked at, after this time. */
  const dueAfter = (ms: number) => amends.targets((state.now += ms)).length > 0
  return { amends, state, wrote, put, dueAfter }
}

describe('amends', () => {
  it('a write that was answered and read back is not looked at again', () => {
    const { wrote, put, dueAfter } = world()
    wrote(listing([OLD, STAYS]), true)
    expect(dueAfter(500)).to.equal(false)
    expect(put()).to.deep.equal([])
    expect(dueAfter(2500)).to.equal(false)
  })

  it('one without an answer may be applied late: what it overwrote is put back, at looks ever further apart', () => {
    const { wrote, put, state, dueAfter } = world()
    wrote(listing([OLD, STAYS]), false)
    expect(dueAfter(499)).to.equal(false)
    expect(dueAfter(1)).to.equal(true)
    expect(put(listing([STAYS, NEW])), 'nothing is lost yet').to.deep.equal([])
    expect(put()).to.deep.equal([NEW])
    expect(dueAfter(499)).to.equal(false)
    for (const ms of [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]) expect(dueAfter(ms)).to.equal(true)
    expect(dueAfter(60_000)).to.equal(false)
    expect(put()).to.deep.equal([])
    expect(state.now).to.be.greaterThan(60_000)
  })

  it('a second write that has read the addition does not make the first one good', () => {
    const { wrote, put } = world()
    wrote(listing([OLD, STAYS]), false)
    wrote(listing([OLD, STAYS, NEW]), true)
    // Now the first one is applied.
    expect(put()).to.deep.equal([NEW])
  })

  it('what was listed before the write, and not taken out by it, is gone by another hand', () => {
    const { wrote, put } = world()
    wrote(listing([OLD, STAYS, NEW]), false)
    expect(put()).to.deep.equal([])
  })

  it('what was put back, and taken out by a write that is applied later still, is put back again', () => {
    const { amends, wrote, put } = world()
    wrote(listing([OLD, STAYS]), false)
    expect(put()).to.deep.equal([NEW])
    const before = listing([STAYS])
    const edit = { path: before.path, holder: before, remove: new Set<NodeKey>(), add: listing([NEW]).nodes }
    amends.wrote({ target: TARGET, edits: [edit], answered: true })
    expect(put()).to.deep.equal([NEW])
  })

  it('an array that was written while Kubernetes was not heard of is looked at when it is again', () => {
    const { wrote, put, state, dueAfter } = world()
    wrote(listing([OLD, STAYS]), true)
    state.current = false
    expect(dueAfter(2000)).to.equal(false)
    expect(dueAfter(600_000)).to.equal(false)
    expect(put()).to.deep.equal([])
    state.current = true
    expect(dueAfter(500)).to.equal(true)
    expect(put()).to.deep.equal([NEW])
  })

  it('an address that changed hands between the question and the write is the new pod’s, in a map too', () => {
    const { wrote, put, dueAfter } = world({ surely: false, expected: [OLD, STAYS] })
    wrote(listing([OLD, STAYS], 'map'), true)
    expect(dueAfter(500)).to.equal(true)
    expect(put(listing([STAYS], 'map'))).to.deep.equal([OLD])
  })

  it('a map that was written before the answer of a hook is nobody’s loss', () => {
    const { wrote, put, dueAfter } = world({ expected: [OLD, STAYS] })
    wrote(listing([OLD, STAYS], 'map'), true)
    expect(dueAfter(500)).to.equal(false)
    expect(put(listing([STAYS], 'map'))).to.deep.equal([])
  })

  it('never puts back what ends, what has no sibling, or anything into an object that is gone', () => {
    const { amends, wrote, put, state } = world()
    wrote(listing([OLD, STAYS]), false)
    state.stays = false
    expect(put()).to.deep.equal([])
    state.stays = true
    expect(put(listing([]))).to.deep.equal([])
    expect(amends.wishes(TARGET, undefined)).to.deep.equal([])
    expect(put(holder('other', [STAYS], { form: 'array' }))).to.deep.equal([])
    expect(amends.wishes({ ...TARGET, id: 'other' }, [listing([STAYS])])).to.deep.equal([])
  })
})
