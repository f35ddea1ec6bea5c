import { expect } from 'chai'
import { toLabelledPod } from '../../../agent/watch/pod-fact.ts'
import { toServiceFact } from '../../../agent/watch/service-fact.ts'
import { createServiceStore } from '../../../agent/watch/service-store.ts'

const object = (annotations: Record<string, string>) => ({
  metadata: { uid: 'u1', namespace: 'shop', name: 'web', annotations },
  spec: { ports: [{ name: 'http', port: 80 }, { port: 81 }, { name: 'broken', port: 'x' }] }
})

describe('watch: services', () => {
  it('are shrunk to their ports and our annotations', () => {
    expect(toServiceFact(object({ 'apisix-drain.io/upstream': 'web', other: 'x' }))).to.deep.equal({
      uid: 'u1',
      namespace: 'shop',
      name: 'web',
      ports: [
        { name: 'http', port: 80 },
        { name: '', port: 81 }
      ],
      annotations: { 'apisix-drain.io/upstream': 'web' }
    })
    expect(toServiceFact({ metadata: {} })).to.equal(undefined)
    expect(toServiceFact(null)).to.equal(undefined)
  })

  it('are kept only where they ask for something, and are the same list until something changes', () => {
    const { store, sink } = createServiceStore()
    const asks = toServiceFact(object({ 'apisix-drain.io/upstream': 'web' }))!
    const asksNothing = toServiceFact(object({ other: 'x' }))!
    expect(sink.set(asksNothing)).to.equal(false)
    expect(sink.set(asks)).to.equal(true)
    const list = store.asking()
    expect(sink.set({ ...asks })).to.equal(false)
    expect(store.asking()).to.equal(list)
    expect(sink.set(asksNothing), 'the annotation was taken away').to.equal(true)
    expect(store.asking()).to.deep.equal([])
    sink.set(asks)
    expect(sink.gone('u1', undefined)).to.equal(true)
    expect(sink.gone('u1', undefined)).to.equal(false)
  })

  it('want the labels of pods, which are shared by all that have the same', () => {
    const pod = (uid: string) =>
      toLabelledPod({ metadata: { uid, namespace: 'shop', name: uid, labels: { app: 'web' } } })
    expect(pod('a')?.labels).to.deep.equal({ app: 'web' })
    expect(pod('a')?.labels).to.equal(pod('b')?.labels)
  })
})
