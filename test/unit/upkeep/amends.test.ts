import { expect } from 'chai'
import type { NodeKey } from '../../../agent/rules/drain/facts.ts'
import type { Target } from '../../../agent/gateway/write/removal.ts'
import { createAmends } from '../../../agent/upkeep/amends.ts'
import type { Holder } from '../../../agent/rules/plan/holder.ts'
import { holder } from '../../build/holder.ts'

const TARGET: Target = { resource: 'upstreams', id: 'web' }
const [OLD, STAYS, NEW] = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
const listing = (nodes: readonly string[], form: Holder['form'] = 'array') => holder('web', nodes, { form })

function world() {
  const state = { now: 0, leaving: new Set<NodeKey>([OLD]), uid: '1' }
  const amends = createAmends({
    podsAt: () => state.uid,
    isLeaving: node => state.leaving.has(node),
    now: () => state.now
  })
  const wrote = (before: Holder, answered: boolean, remove: readonly NodeKey[] = [OLD], add?: Holder) =>
    amends.wrote({
      target: TARGET,
      edits: [{ path: before.path, holder: before, remove: new Set(remove), add: add?.nodes ?? [] }],
      answered
    })
  const read = (...nodes: string[]) =>
    amends
      .wishes(TARGET, [listing(nodes)])
      .flatMap(({ put }) => put.map(({ key, weight }) => `${key}=${weight}`))
  /** Whether the next check of the object is due after this time. */
  const dueAfter = (ms: number) => amends.targets((state.now += ms)).length > 0
  return { amends, state, wrote, read, dueAfter }
}

describe('amends', () => {
  it('an answered write is not checked again', () => {
    const { wrote, read, dueAfter } = world()
    wrote(listing([OLD, STAYS]), true)
    expect(dueAfter(100_000)).to.equal(false)
    expect([read(STAYS, NEW), read(STAYS)]).to.deep.equal([[], []])
  })

  it('an unanswered write that is applied late: nodes read since are restored unchanged, by checks at growing intervals', () => {
    const { wrote, read, dueAfter } = world()
    wrote(listing([OLD, STAYS]), false)
    expect(dueAfter(499)).to.equal(false)
    expect(dueAfter(1)).to.equal(true)
    expect(read(OLD, STAYS), 'not applied yet').to.deep.equal([])
    expect(read(STAYS, `${NEW}=7`), 'nothing is lost yet').to.deep.equal([])
    expect(read(STAYS)).to.deep.equal([`${NEW}=7`])
    expect(read(STAYS), 'a write that did not come through').to.deep.equal([`${NEW}=7`])
    for (const ms of [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]) expect(dueAfter(ms)).to.equal(true)
    expect(dueAfter(60_000)).to.equal(false)
    expect(read(STAYS)).to.deep.equal([])
  })

  it('a later write that removed more does not hide nodes that the first one overwrote', () => {
    const { wrote, read } = world()
    wrote(listing([OLD, STAYS]), false)
    expect(read(OLD, STAYS, NEW)).to.deep.equal([])
    wrote(listing([OLD, STAYS, NEW]), true)
    expect(read(STAYS)).to.deep.equal([`${NEW}=1`])
  })

  it('a node that was never read in the holder is never added, whatever Kubernetes lists', () => {
    const { wrote, read } = world()
    wrote(listing([OLD, STAYS]), false)
    expect([read(OLD, STAYS), read(STAYS)]).to.deep.equal([[], []])
  })

  it('a node missing from a list that we did not write was removed by its owner', () => {
    const { wrote, read } = world()
    wrote(listing([OLD, STAYS]), false)
    expect([read(STAYS, NEW, '10.0.0.4:80'), read(STAYS, '10.0.0.4:80')]).to.deep.equal([[], []])
    expect(read(STAYS), 'only what was read last').to.deep.equal(['10.0.0.4:80=1'])
  })

  it('a node whose address another pod has by now is not restored: another agent has removed it', () => {
    const { state, wrote, read } = world()
    wrote(listing([OLD, STAYS]), false)
    // The owner puts the old node back, the other agent removes it, and then a pod of another tenant gets its address.
    read(OLD, STAYS)
    state.leaving.clear()
    state.uid = '2'
    expect(read(STAYS)).to.deep.equal([])
    state.uid = '1'
    expect(read(STAYS)).to.deep.equal([`${OLD}=1`])
  })

  it('a restored node is not restored again', () => {
    const { wrote, read } = world()
    wrote(listing([OLD, STAYS]), false)
    read(STAYS, NEW)
    expect(read(STAYS)).to.deep.equal([`${NEW}=1`])
    wrote(listing([STAYS]), true, [], listing([NEW]))
    expect([read(STAYS, NEW), read(STAYS)]).to.deep.equal([[], []])
  })

  it('a map is merged: nothing can be lost', () => {
    const { wrote, read, dueAfter } = world()
    wrote(listing([OLD, STAYS], 'map'), false)
    expect(dueAfter(500)).to.equal(false)
    expect([read(STAYS, NEW), read(STAYS)]).to.deep.equal([[], []])
  })

  it('never restores a node that is leaving, or any node into a deleted object', () => {
    const { amends, wrote, read, state } = world()
    wrote(listing([OLD, STAYS]), false)
    read(STAYS, NEW)
    state.leaving.add(NEW)
    expect(read(STAYS)).to.deep.equal([])
    state.leaving.delete(NEW)
    expect(amends.wishes(TARGET, [])).to.deep.equal([])
    expect(amends.wishes({ ...TARGET, id: 'other' }, [listing([STAYS])])).to.deep.equal([])
    expect(read(STAYS)).to.deep.equal([`${NEW}=1`])
  })
})
