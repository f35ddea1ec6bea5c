import { expect } from 'chai'
import { manualClock } from '../../../build/manual-clock.ts'
import { silent } from '../../../build/apisix.ts'
import { createLiveness } from '../../../../agent/kubernetes/reflect/watch-status.ts'
import { podsIn } from '../../../../agent/kubernetes/reflect/collection.ts'
import type { Connection, StreamHandlers } from '../../../../agent/kubernetes/transport/connection.ts'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { startReflector } from '../../../../agent/kubernetes/reflect/reflector.ts'
import { podObject } from '../facts/objects.ts'

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
