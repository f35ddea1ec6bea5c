import { expect } from 'chai'
import { pino } from 'pino'
import { createIntake } from '../../../../agent/kubernetes/reflect/follow.ts'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { podObject } from '../facts/objects.ts'

const setUp = () => {
  const { store, sink } = createPodStore(manualClock())
  const logged: Record<string, unknown>[] = []
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) })
  let changes = 0
  const intake = createIntake(toPodFact, sink, () => (changes += 1), log)
  const names = () => [...store.values()].map(p => `${p.name}:${p.uid}:${p.ready ? 'ready' : 'not'}`)
  return { store, intake, names, logged, changes: () => changes }
}
const at = (revision: string, uid = 'u1', ready = true) =>
  podObject('db-0', {
    metadata: { uid, resourceVersion: revision },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] }
  })

describe('watch: the intake', () => {
  it('is not set back by a watch that is behind a direct read', () => {
    const { intake, names } = setUp()
    intake.set(at('10'))
    intake.learn(at('20', 'u1', false))
    intake.set(at('15'))
    expect(names()).to.deep.equal(['db-0:u1:not'])
    intake.set(at('20', 'u1', false))
    intake.set(at('21'))
    expect(names()).to.deep.equal(['db-0:u1:ready'])
  })

  it('an earlier pod of the same name does not come back, and its late DELETED does not affect the new pod', () => {
    const { intake, store, names } = setUp()
    intake.set(at('10', 'old'))
    intake.learn(at('20', 'new'))
    intake.set(at('12', 'old', false))
    intake.gone(at('14', 'old', false))
    expect(names()).to.deep.equal(['db-0:new:ready'])
    expect(store.gone('old' as never)).not.to.equal(undefined)
    expect(intake.known).to.equal(1)
  })

  it('a list does not remove an object that was read during that list', () => {
    const { intake, names } = setUp()
    intake.beginList()
    intake.learn(at('20'))
    intake.endList('15')
    expect(names()).to.deep.equal(['db-0:u1:ready'])
    intake.beginList()
    intake.endList('30')
    expect(names()).to.deep.equal([])
  })

  it('a list that is newer than a read during that list removes the object if it lacks it', () => {
    const { intake, store, names } = setUp()
    intake.set(at('10'))
    intake.beginList()
    // This answer is late: the pod was gone before the list was made.
    intake.learn(at('20'))
    intake.endList('25')
    expect(names()).to.deep.equal([])
    expect(store.gone('u1' as never)).not.to.equal(undefined)
  })

  it('a list with an older state than a read keeps the read', () => {
    const { intake, names } = setUp()
    intake.beginList()
    intake.learn(at('20', 'u1', false))
    intake.set(at('15'))
    intake.endList('16')
    expect(names()).to.deep.equal(['db-0:u1:not'])
    // The list did not end the guard. Only a list that is newer than the guard's version ends it.
    intake.set(at('17'))
    expect(names()).to.deep.equal(['db-0:u1:not'])
    intake.beginList()
    intake.set(at('25'))
    intake.endList('30')
    expect(names()).to.deep.equal(['db-0:u1:ready'])
  })

  it('logs unreadable objects now and then, and keeps their last known state', () => {
    const { intake, names, logged, changes } = setUp()
    intake.set(at('10'))
    const before = changes()
    intake.beginList()
    intake.set(podObject('db-0', { metadata: { uid: 'u1', deletionTimestamp: 'soon' } }))
    for (const bad of [null, {}, 'text']) intake.set(bad)
    intake.gone(undefined)
    intake.learn({})
    intake.endList('20')
    expect(names()).to.deep.equal(['db-0:u1:ready'])
    expect([logged.length, changes() - before]).to.deep.equal([1, 0])
  })
})
