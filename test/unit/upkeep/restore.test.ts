import { expect } from 'chai'
import type { PodUid } from '../../../agent/rules/drain/facts.ts'
import { createRestore } from '../../../agent/upkeep/restore.ts'
import type { Holder } from '../../../agent/rules/plan/holder.ts'
import { holder } from '../../build/holder.ts'
import { pod } from '../../build/pod.ts'

const UID = 'uid-web-1' as PodUid
const TARGET = { resource: 'upstreams', id: 'web' } as const
const BEFORE = holder('web', ['10.0.0.1:8080=7', '10.0.0.2:8080'])
const AFTER = holder('web', ['10.0.0.2:8080'])

function rig(before: Holder = BEFORE) {
  const state = { stays: true, isBack: false, today: AFTER as Holder | undefined, leaving: new Set<string>() }
  const restore = createRestore({
    staysAt: () => state.stays,
    isBack: () => state.isBack,
    isLeaving: node => state.leaving.has(node),
    holders: () => new Map(state.today ? [[state.today.key, state.today]] : [])
  })
  const take = () => restore.taken({ target: TARGET, holder: before, node: before.nodes[0]!, uid: UID })
  const puts = (found: readonly Holder[]) =>
    restore.wishes(TARGET, found).flatMap(({ put }) => put.map(({ key, weight }) => `${key}=${weight}`))
  return { state, restore, take, puts }
}

describe('nodes that an undone drain puts back', () => {
  it('are none while the drain lasts, nor after its normal end', () => {
    const { restore, take, puts } = rig()
    take()
    expect(puts([AFTER])).to.deep.equal([])
    restore.over(pod('web-1', { uid: UID }), 0)
    restore.undone(UID, 0)
    expect(restore.targets(0)).to.deep.equal([])
  })

  it('are the removed node, unchanged, until it is read back, and then never again', () => {
    const { restore, take, puts } = rig()
    take()
    restore.undone(UID, 0)
    expect(restore.targets(0)).to.deep.equal([TARGET])
    expect(puts([AFTER])).to.deep.equal(['10.0.0.1:8080=7'])
    expect(puts([AFTER]), 'a write that did not come through').to.deep.equal(['10.0.0.1:8080=7'])
    expect(puts([BEFORE])).to.deep.equal([])
    expect(puts([AFTER]), 'its owner took it out again').to.deep.equal([])
    expect(restore.targets(0)).to.deep.equal([])
  })

  const gone: readonly (readonly [string, readonly Holder[]])[] = [
    ['its owner has put it back', [holder('web', ['10.0.0.1:8080=1'])]],
    ['the holder is gone', []],
    ['APISIX finds the nodes itself by now', [{ ...AFTER, discovery: { type: 'dns', service: 'web' } }]]
  ]
  for (const [why, found] of gone)
    it(`are none if ${why}`, () => {
      const { restore, take, puts } = rig()
      take()
      restore.undone(UID, 0)
      expect(puts(found)).to.deep.equal([])
      expect(puts([AFTER])).to.deep.equal([])
    })

  it('are none if the pod ends after all, or another pod has its address', () => {
    const { state, restore, take, puts } = rig()
    take()
    restore.undone(UID, 0)
    state.stays = false
    expect(puts([AFTER])).to.deep.equal([])
  })

  it('include the node of a write that was open when the drain was undone', () => {
    const { restore, take, puts } = rig()
    restore.undone(UID, 0)
    take()
    expect(restore.targets(10)).to.deep.equal([TARGET])
    expect(puts([AFTER])).to.deep.equal(['10.0.0.1:8080=7'])
  })

  it('are not put into another traffic-split rule that has taken the place', () => {
    const path = ['plugins', 'traffic-split', 'rules', 0, 'weighted_upstreams', 0, 'upstream']
    const { restore, take, puts } = rig({ ...BEFORE, path })
    take()
    restore.undone(UID, 0)
    expect(puts([{ ...holder('web', ['10.0.9.9:80']), path }])).to.deep.equal([])
  })

  it('are written in the holder’s current form', () => {
    const { restore, take } = rig()
    take()
    restore.undone(UID, 0)
    const [wish] = restore.wishes(TARGET, [{ ...AFTER, form: 'array' }])
    expect(wish?.put[0]?.raw).to.deep.equal({ host: '10.0.0.1', port: 8080, weight: 7 })
  })
})

describe('a node that a drain removed at a fixed address', () => {
  const OWNED = pod('web-1', { uid: UID, owner: 'DaemonSet/web' })
  const begun = (before: Holder = BEFORE) => {
    const world = rig(before)
    world.take()
    world.restore.over(OWNED, 0)
    return world
  }

  it('is put back once, unchanged, when the next pod of the workload is Ready there', () => {
    const { state, restore, puts } = begun()
    expect([restore.targets(0), puts([AFTER])]).to.deep.equal([[], []])
    state.isBack = true
    expect(restore.targets(0)).to.deep.equal([TARGET])
    expect(puts([AFTER])).to.deep.equal(['10.0.0.1:8080=7'])
    expect([puts([BEFORE]), puts([AFTER])]).to.deep.equal([[], []])
  })

  const others: readonly (readonly [string, Holder | undefined])[] = [
    ['another writer lists another node', holder('web', ['10.0.0.2:8080', '10.0.0.9:8080'])],
    ['another writer removed another node', holder('web', [])],
    ['another writer has put it back', BEFORE],
    ['the holder is gone', undefined]
  ]
  for (const [why, today] of others)
    it(`is left alone if ${why}`, () => {
      const { state, restore } = begun()
      state.today = today
      expect(restore.targets(0)).to.deep.equal([])
      Object.assign(state, { today: AFTER, isBack: true })
      expect(restore.targets(0)).to.deep.equal([])
    })

  it('is put back even if we remove and restore other nodes, and another writer changes a weight', () => {
    const { state, restore } = begun()
    Object.assign(state, { today: holder('web', ['10.0.0.2:8080=3']), isBack: true })
    expect(restore.targets(0)).to.deep.equal([TARGET])
    Object.assign(state, { today: holder('web', []), leaving: new Set(['10.0.0.2:8080']) })
    expect(restore.targets(0)).to.deep.equal([TARGET])
  })

  it('is left to the owner if an ingress controller writes the holder', () => {
    const { state, restore } = begun({ ...BEFORE, owner: 'ingress-controller-2' })
    state.isBack = true
    expect(restore.targets(0)).to.deep.equal([])
  })

  it('is put back for up to an hour', () => {
    const { state, restore } = begun()
    state.isBack = true
    expect(restore.targets(3_600_001)).to.deep.equal([])
  })
})
