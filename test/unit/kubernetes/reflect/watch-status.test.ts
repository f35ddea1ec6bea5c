import { expect } from 'chai'
import { manualClock } from '../../../build/manual-clock.ts'
import { silent } from '../../../build/apisix.ts'
import { createLiveness, createNextStep, Doubted } from '../../../../agent/kubernetes/reflect/watch-status.ts'
import { ApiError } from '../../../../agent/kubernetes/transport/objects.ts'
import { podsIn } from '../../../../agent/kubernetes/reflect/collection.ts'
import type { Connection, StreamHandlers } from '../../../../agent/kubernetes/transport/connection.ts'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { startReflector } from '../../../../agent/kubernetes/reflect/reflector.ts'
import { podObject } from '../facts/objects.ts'
import { pino } from 'pino'
import { createIntake } from '../../../../agent/kubernetes/reflect/follow.ts'

describe('whether a watch is live', () => {
  const rig = () => {
    const clock = manualClock()
    let changes = 0
    const liveness = createLiveness({ clock, log: silent, onChange: () => (changes += 1), facts: () => ({}) })
    return { clock, liveness, changes: () => changes }
  }

  it('is connecting until everything was listed once; after that, a lost watch is stale', () => {
    const { liveness, changes } = rig()
    expect([liveness.state(), liveness.isSynced()]).eql(['connecting', false])
    liveness.lost('no connection')
    expect([liveness.state(), liveness.problem()]).eql(['connecting', 'no connection'])
    liveness.synced()
    liveness.live()
    expect([liveness.state(), liveness.problem(), liveness.isSynced()]).eql(['live', '', true])
    liveness.lost('status 500')
    expect([liveness.state(), liveness.problem(), liveness.isSynced()]).eql(['stale', 'status 500', true])
    expect(changes()).equal(2)
  })

  it('counts how long each watch has lived, from 0', () => {
    const { clock, liveness } = rig()
    expect(liveness.livedMs()).equal(0)
    liveness.live()
    clock.advance(40)
    expect(liveness.livedMs()).equal(40)
    liveness.begun()
    expect(liveness.livedMs()).equal(0)
  })
})

const EXPIRED = new ApiError('watch pods', 410, {})
const BROKEN = new Error('the connection broke')

describe('the next step of a reflector', () => {
  const listed = () => {
    const next = createNextStep()
    next.listed()
    return next
  }

  it('lists first, and watches after a list', () => {
    const next = createNextStep()
    expect(next.step()).eql({ does: 'list', from: undefined })
    next.failed(BROKEN, undefined)
    expect(next.step()).eql({ does: 'list', from: undefined })
    next.listed()
    expect(next.step()).eql({ does: 'watch' })
  })

  it('lists again after three failures without an event, from the revision that the watch has reached', () => {
    const next = listed()
    for (const failure of [1, 2]) {
      next.failed(BROKEN, '7')
      expect(next.step(), `failure ${failure}`).eql({ does: 'watch' })
    }
    next.heard()
    next.failed(BROKEN, '8')
    next.failed(BROKEN, '8')
    expect(next.step()).eql({ does: 'watch' })
    next.failed(BROKEN, '8')
    expect(next.step()).eql({ does: 'list', from: '8' })
  })

  it('lists at once if the server has dropped the revision, and from any revision if it did so during a list', () => {
    const next = listed()
    next.failed(EXPIRED, '8')
    expect(next.step()).eql({ does: 'list', from: '8' })
    next.failed(EXPIRED, '8')
    expect(next.step()).eql({ does: 'list', from: undefined })
  })

  it('trusts no revision of a watch that another source contradicts', () => {
    const next = listed()
    next.failed(new Doubted('the watch is silent'), '8')
    expect(next.step()).eql({ does: 'list', from: undefined })
  })
})

const pod = (uid: string, revision: string) =>
  podObject(`web-${uid}`, { metadata: { uid, resourceVersion: revision } })
const event = (type: string, object: unknown) => Buffer.from(JSON.stringify({ type, object }))
const listEnd = (resourceVersion: string) =>
  event('BOOKMARK', {
    metadata: { resourceVersion, annotations: { 'k8s.io/initial-events-end': 'true' } }
  })

/** Starts a watch of pods with an open stream. The test plays the server. */
function setUp() {
  const clock = manualClock()
  const { store, sink } = createPodStore(clock)
  const streams: (StreamHandlers & { readonly fail: (error: Error) => void })[] = []
  const connection: Connection = {
    request: () => Promise.reject(new Error('nothing is asked')),
    stream: (_path, handlers, signal) =>
      new Promise((_resolve, fail) => {
        signal.addEventListener('abort', () => fail(signal.reason as Error), { once: true })
        streams.push({ ...handlers, fail })
      }),
    serverBehindMs: () => 0,
    close: () => Promise.resolve()
  }
  const reflector = startReflector({
    connection,
    collection: podsIn(undefined),
    toFact: toPodFact,
    sink,
    clock,
    log: silent,
    onChange: () => {}
  })
  return { store, reflector, stream: () => streams.at(-1)! }
}

describe('watch: a late answer', () => {
  it('does not bring back a pod whose end the watch has shown', async () => {
    const { store, reflector, stream } = setUp()
    stream().onLine(event('ADDED', pod('old', '10')))
    stream().onLine(event('ADDED', pod('stays', '11')))
    stream().onLine(listEnd('20'))
    stream().onLine(event('DELETED', pod('old', '21')))
    stream().fail(new Error('the connection broke'))
    await new Promise(resolve => setImmediate(resolve))
    expect(reflector.status().state).to.equal('stale')
    // The question was sent before the deletion, and answered after the watch had reported it.
    reflector.learn(pod('old', '10'))
    expect([...store.values()].map(({ uid }) => uid)).to.deep.equal(['stays'])
    // A state that is newer than the watch counts, even while the watch is down.
    reflector.learn(pod('new', '22'))
    expect([...store.values()].map(({ uid }) => uid)).to.deep.equal(['stays', 'new'])
    await reflector.stop()
  })
})

const taking = () => {
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
    const { intake, names } = taking()
    intake.set(at('10'))
    intake.learn(at('20', 'u1', false))
    intake.set(at('15'))
    expect(names()).to.deep.equal(['db-0:u1:not'])
    intake.set(at('20', 'u1', false))
    intake.set(at('21'))
    expect(names()).to.deep.equal(['db-0:u1:ready'])
  })

  it('an earlier pod of the same name does not come back, and its late DELETED does not affect the new pod', () => {
    const { intake, store, names } = taking()
    intake.set(at('10', 'old'))
    intake.learn(at('20', 'new'))
    intake.set(at('12', 'old', false))
    intake.gone(at('14', 'old', false))
    expect(names()).to.deep.equal(['db-0:new:ready'])
    expect(store.gone('old' as never)).not.to.equal(undefined)
    expect(intake.known).to.equal(1)
  })

  it('a list does not remove an object that was read during that list', () => {
    const { intake, names } = taking()
    intake.beginList()
    intake.learn(at('20'))
    intake.endList('15')
    expect(names()).to.deep.equal(['db-0:u1:ready'])
    intake.beginList()
    intake.endList('30')
    expect(names()).to.deep.equal([])
  })

  it('a list that is newer than a read during that list removes the object if it lacks it', () => {
    const { intake, store, names } = taking()
    intake.set(at('10'))
    intake.beginList()
    // This answer is late: the pod was gone before the list was made.
    intake.learn(at('20'))
    intake.endList('25')
    expect(names()).to.deep.equal([])
    expect(store.gone('u1' as never)).not.to.equal(undefined)
  })

  it('a list with an older state than a read keeps the read', () => {
    const { intake, names } = taking()
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
    const { intake, names, logged, changes } = taking()
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
