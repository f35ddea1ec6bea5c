import { expect } from 'chai'
import type { PodFact } from '../../../agent/drain/facts.ts'
import { desiredEntry } from '../../../agent/loop/entries.ts'
import { createMemories } from '../../../agent/loop/memory.ts'
import { worldOf } from '../../../agent/plan/world.ts'
import { drainOf, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'

/** What the gateways are to bar of a pod that has been drained, where there are these other pods. */
function barred(drained: PodFact, ...others: readonly PodFact[]) {
  const drain = { ...drainOf(seen(drained)), phase: 'gone' as const, at: 1 }
  const world = worldOf([], [drained, ...others])
  return desiredEntry(drain as never, createMemories().of(drain.uid), { world } as never)?.nodes
}

describe('what is barred of a pod that was drained', () => {
  const ended = { ...terminating(0), ips: ['10.0.0.1'] }

  it('is its address, until a pod that stays has it', () => {
    const drained = pod('old', ended)
    expect(barred(drained)).to.deep.equal(['10.0.0.1'])
    expect(barred(drained, pod('also-ending', ended))).to.deep.equal(['10.0.0.1'])
    expect(barred(drained, pod('next', { ips: ['10.0.0.1'], ready: false }))).to.equal(undefined)
    expect(barred(drained, pod('on the host', { ips: ['10.0.0.1'], hostNetwork: true }))).to.deep.equal([
      '10.0.0.1'
    ])
  })

  it('is its ports on its host’s address, until a pod that is Ready has them', () => {
    const onHost = { hostNetwork: true, containerPorts: [8080, 8081] }
    const drained = pod('old', { ...ended, ...onHost })
    const next = (differs: Partial<PodFact>) => pod('next', { ips: ['10.0.0.1'], ...onHost, ...differs })
    const both = ['10.0.0.1:8080', '10.0.0.1:8081']
    expect(barred(drained)).to.deep.equal(both)
    expect(barred(drained, next({ ready: false }))).to.deep.equal(both)
    expect(barred(drained, next(terminating(0)))).to.deep.equal(both)
    expect(barred(drained, next({ containerPorts: [9090] }))).to.deep.equal(both)
    expect(barred(drained, next({ ips: ['10.0.0.2'] }))).to.deep.equal(both)
    expect(barred(drained, next({ containerPorts: [8081] }))).to.deep.equal(['10.0.0.1:8080'])
    expect(barred(drained, next({}))).to.equal(undefined)
  })

  it('is all of its ports while it still serves, whoever else has one', () => {
    const onHost = { ips: ['10.0.0.1'], hostNetwork: true, containerPorts: [8080] }
    const drain = drainOf(seen(pod('old', { ...onHost, ...terminating(0) })))
    const memory = { ...createMemories().of(drain.uid), sealed: true }
    const world = worldOf([], [drain.pod, pod('other', onHost)])
    expect(desiredEntry(drain, memory, { world } as never)?.nodes).to.deep.equal(['10.0.0.1:8080'])
  })
})
