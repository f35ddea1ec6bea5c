import { expect } from 'chai'
import { withGate } from '../../../../agent/kubernetes/facts/gated-pod.ts'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod } from '../../../build/pod.ts'

const OURS = 'apisix-drain.io/in-upstream'
const gateOf = (gates: readonly string[], conditions: Readonly<Record<string, string>>) =>
  withGate(toPodFact)({
    metadata: { uid: 'u', name: 'web-1', namespace: 'shop' },
    spec: { readinessGates: gates.map(conditionType => ({ conditionType })) },
    status: { conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })) }
  })?.gate

describe('watch: the state of our readiness gate', () => {
  it('waits for us if all else is ready', () => {
    expect(gateOf([OURS], { ContainersReady: 'True', Ready: 'False' })).to.equal('waiting')
    expect(gateOf([OURS], { ContainersReady: 'True', [OURS]: 'False' })).to.equal('waiting')
    expect(gateOf([OURS, 'other'], { ContainersReady: 'True', other: 'True' })).to.equal('waiting')
  })

  it('is open if its condition is True, even before the kubelet reports Ready', () => {
    expect(gateOf([OURS], { ContainersReady: 'True', [OURS]: 'True', Ready: 'False' })).to.equal('open')
  })

  it('is absent if something else is not ready, or the pod has no such gate', () => {
    expect(gateOf([OURS], { ContainersReady: 'False', [OURS]: 'True' })).to.equal(undefined)
    expect(gateOf([OURS, 'other'], { ContainersReady: 'True' })).to.equal(undefined)
    expect(gateOf([], { ContainersReady: 'True' })).to.equal(undefined)
    expect(gateOf(['other'], { ContainersReady: 'True' })).to.equal(undefined)
    expect(withGate(toPodFact)({ status: {} })).to.equal(undefined)
  })

  it('is reported for pods that wait only for us, until they stop waiting or end; every change is reported', () => {
    const { store, sink } = createPodStore(manualClock())
    const waiting = pod('web-1', { ready: false, gate: 'waiting' })
    sink.set(pod('web-1', { ready: false }))
    expect(store.waiting()).to.deep.equal([])
    const before = store.gateChanges
    sink.set(waiting)
    expect(store.waiting()).to.deep.equal([waiting])
    expect([...store.becameReady().keys()]).to.deep.equal([waiting.uid])
    expect(store.gateChanges).to.equal(before + 1)
    sink.set({ ...waiting, deletionAt: 1 })
    expect(store.waiting()).to.deep.equal([])
    expect(store.becameReady().size).to.equal(0)
    sink.set(waiting)
    sink.set({ ...waiting, gate: 'open' })
    expect(store.waiting()).to.deep.equal([])
    expect(store.gateChanges).to.equal(before + 2)
  })
})
