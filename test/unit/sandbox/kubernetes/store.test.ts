import { expect } from 'chai'
import * as fc from 'fast-check'
import { ApiError } from '../../../../sandbox/kubernetes/errors.ts'
import { createStore, type Store } from '../../../../sandbox/kubernetes/store.ts'
import { podDraft } from './client.ts'

const refusal = (act: () => unknown): ApiError => {
  try {
    act()
  } catch (err) {
    if (err instanceof ApiError) return err
    throw err
  }
  throw new Error('was not refused')
}

describe('sandbox/kubernetes store', () => {
  let now = Date.parse('2026-01-01T00:00:00.900Z')
  let store: Store
  let told: string[]
  beforeEach(() => {
    now = Date.parse('2026-01-01T00:00:00.900Z')
    store = createStore({ now: () => now })
    told = []
    store.onAnyChange(({ type, object }) => told.push(`${type} ${object.metadata.name}`))
  })

  it('assigns uid, creation time, generation, and one version counter for all resources', () => {
    const pod = store.create('pods', podDraft('a'))
    const lease = store.create('leases', { metadata: { name: 'l', namespace: 'default' } })
    expect(pod.metadata.uid).to.match(/^[0-9a-f-]{36}$/)
    expect(pod.metadata.creationTimestamp).to.equal('2026-01-01T00:00:00Z')
    expect(pod.metadata.generation).to.equal(1)
    expect(Number(lease.metadata.resourceVersion)).to.equal(Number(pod.metadata.resourceVersion) + 1)
    expect(pod.status.phase).to.equal('Pending')
    expect(Object.isFrozen(pod.spec.containers)).to.equal(true)
  })
  it('completes generateName and refuses a name that is taken or missing', () => {
    const { metadata, ...rest } = podDraft('x')
    const pod = store.create('pods', { ...rest, metadata: { namespace: 'default', generateName: 'web-' } })
    expect(pod.metadata.name).to.match(/^web-[a-z0-9]{5}$/)
    store.create('pods', { ...rest, metadata })
    expect(refusal(() => store.create('pods', { ...rest, metadata }))).to.include({
      code: 409,
      reason: 'AlreadyExists'
    })
    expect(refusal(() => store.create('pods', { ...rest, metadata: {} })).code).to.equal(422)
  })
  it('does not count a write that changes nothing', () => {
    const pod = store.create('pods', podDraft('a'))
    expect(store.update('pods', pod).metadata.resourceVersion).to.equal(pod.metadata.resourceVersion)
    expect(told).to.deep.equal(['ADDED a'])
  })
  it('keeps status and the rest apart, and counts generations of the spec only', () => {
    const pod = store.create('pods', podDraft('a'))
    store.patchStatus('pods', 'default', 'a', {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }]
    })
    const labelled = store.modify('pods', 'default', 'a', now => ({
      ...now,
      status: { phase: 'Failed' as const },
      metadata: { ...now.metadata, labels: { a: 'b' } }
    }))
    expect(labelled.status.phase).to.equal('Running')
    expect(labelled.metadata.generation).to.equal(1)
    const changed = store.updateStatus('pods', {
      ...labelled,
      spec: { containers: [] },
      status: { phase: 'Failed' }
    })
    expect(changed.spec.containers).to.deep.equal(pod.spec.containers)
    expect(changed.status).to.deep.equal({ phase: 'Failed' })
    const respecified = store.modify('pods', 'default', 'a', now => ({
      ...now,
      spec: { ...now.spec, nodeName: 'host-2' }
    }))
    expect(respecified.metadata.generation).to.equal(2)
  })
  it('fills in defaults on update too, and keeps a cluster IP that is left out', () => {
    const draft = { metadata: { name: 's', namespace: 'default' }, spec: { ports: [{ port: 80 }] } }
    const { spec } = store.create('services', draft)
    expect(spec.ports).to.deep.equal([{ protocol: 'TCP', targetPort: 80, port: 80 }])
    const updated = store.update('services', { ...draft, spec: { ports: [{ port: 81 }] } })
    expect(updated.spec.clusterIP).to.equal(spec.clusterIP)
    expect(updated.spec.ports?.[0]?.targetPort).to.equal(81)
  })
  describe('delete', () => {
    it('lets a second delete shorten the grace, counted from the first, and never lengthen it', () => {
      store.create('pods', podDraft('a'))
      store.delete('pods', 'default', 'a')
      now += 3000
      expect(
        store.delete('pods', 'default', 'a', { gracePeriodSeconds: 60 }).metadata.deletionGracePeriodSeconds
      ).to.equal(30)
      expect(store.delete('pods', 'default', 'a').metadata.deletionGracePeriodSeconds).to.equal(30)
      const shorter = store.delete('pods', 'default', 'a', { gracePeriodSeconds: 10 })
      expect(shorter.metadata).to.include({
        deletionTimestamp: '2026-01-01T00:00:10Z',
        deletionGracePeriodSeconds: 10
      })
      expect(told).to.deep.equal(['ADDED a', 'MODIFIED a', 'MODIFIED a'])
    })
    it('removes a pod at grace 0, after a MODIFIED event that shows it', () => {
      store.create('pods', podDraft('a'))
      store.delete('pods', 'default', 'a', { gracePeriodSeconds: 0 })
      expect(told).to.deep.equal(['ADDED a', 'MODIFIED a', 'DELETED a'])
      expect(store.get('pods', 'default', 'a')).to.equal(undefined)
    })
    it('removes at once a pod that has no host or has ended', () => {
      store.create('pods', { ...podDraft('a'), spec: { containers: [] } })
      store.create('pods', podDraft('b'))
      store.patchStatus('pods', 'default', 'b', { phase: 'Failed' })
      store.delete('pods', 'default', 'a')
      store.delete('pods', 'default', 'b')
      expect(store.list('pods')).to.deep.equal([])
    })
    it('refuses on another uid or version', () => {
      store.create('pods', podDraft('a'))
      expect(
        refusal(() => store.delete('pods', 'default', 'a', { preconditions: { uid: 'x' } })).code
      ).to.equal(409)
      expect(
        refusal(() => store.delete('pods', 'default', 'a', { preconditions: { resourceVersion: '1' } })).code
      ).to.equal(409)
      expect(refusal(() => store.delete('pods', 'default', 'b')).code).to.equal(404)
    })
    it('waits for the last finalizer, and for the grace too', () => {
      const draft = podDraft('a')
      store.create('pods', { ...draft, metadata: { ...draft.metadata, finalizers: ['x/y'] } })
      store.delete('pods', 'default', 'a', { gracePeriodSeconds: 0 })
      expect(store.get('pods', 'default', 'a')?.metadata.deletionTimestamp).to.be.a('string')
      store.modify('pods', 'default', 'a', pod => ({ ...pod, metadata: { ...pod.metadata, finalizers: [] } }))
      expect(told).to.deep.equal(['ADDED a', 'MODIFIED a', 'DELETED a'])
      store.create('pods', { ...draft, metadata: { ...draft.metadata, finalizers: ['x/y'] } })
      store.delete('pods', 'default', 'a')
      store.modify('pods', 'default', 'a', pod => ({ ...pod, metadata: { ...pod.metadata, finalizers: [] } }))
      expect(store.get('pods', 'default', 'a')?.metadata.deletionGracePeriodSeconds).to.equal(30)
    })
    it('deletes other kinds without a last MODIFIED', () => {
      store.create('configmaps', { metadata: { name: 'c', namespace: 'default' } })
      store.delete('configmaps', 'default', 'c')
      expect(told).to.deep.equal(['ADDED c', 'DELETED c'])
    })
  })

  it('notifies every listener in the same order, even if one of them writes', () => {
    const seen: string[] = []
    store.onChange('pods', ({ type }) => {
      if (type === 'ADDED') store.patchStatus('pods', 'default', 'a', { phase: 'Running' })
    })
    store.onChange('pods', ({ version, type }) => seen.push(`${version} ${type}`))
    store.create('pods', podDraft('a'))
    expect(seen).to.deep.equal(['1001 ADDED', '1002 MODIFIED'])
  })
  it('checks but does not store a dry run', () => {
    store.create('pods', podDraft('a'), { dryRun: true })
    expect(store.list('pods')).to.deep.equal([])
    store.create('pods', podDraft('a'))
    store.delete('pods', 'default', 'a', { dryRun: true, gracePeriodSeconds: 0 })
    expect(told).to.deep.equal(['ADDED a'])
  })
  it('shows any moment of its history, exactly as it was (law)', () => {
    const act = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      act: fc.constantFrom('create', 'label', 'delete'),
      n: fc.nat(9)
    })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), acts => {
        const store = createStore()
        const moments = new Map([[store.version(), store.snapshot('pods')]])
        for (const { name, act, n } of acts) {
          const exists = store.get('pods', 'default', name) !== undefined
          if (act === 'create' && !exists) store.create('pods', podDraft(name))
          if (act === 'delete' && exists)
            store.delete('pods', 'default', name, { gracePeriodSeconds: n > 4 ? 0 : 9 })
          if (act === 'label' && exists)
            store.modify('pods', 'default', name, pod => ({
              ...pod,
              metadata: { ...pod.metadata, labels: { n: `${n}` } }
            }))
          moments.set(store.version(), store.snapshot('pods'))
        }
        for (const [version, objects] of moments)
          expect(store.snapshot('pods', version)).to.deep.equal(objects)
      })
    )
  })
  it('answers 410 beyond its history', () => {
    const small = createStore({ historyLimit: 5 })
    const first = small.version()
    for (let i = 0; i < 20; i += 1) small.create('pods', podDraft(`p${i}`))
    expect(refusal(() => small.snapshot('pods', first)).code).to.equal(410)
    expect(small.history.since(first)).to.equal(undefined)
    expect(small.history.since(small.version() - 3)).to.have.length(3)
  })
})
