import { expect } from 'chai'
import * as fc from 'fast-check'
import type { PodPhase, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { isOver, saysThatItEnds } from '../../../../agent/rules/drain/eligible.ts'

const uid = (text: string) => text as PodUid

describe('watch: the pod store', () => {
  it('reports whether anything changed', () => {
    const { sink } = createPodStore(manualClock())
    expect(sink.set(pod('a'))).to.equal(true)
    expect(sink.set(pod('a'))).to.equal(false)
    expect(sink.set(pod('a', { ready: false }))).to.equal(true)
    expect(sink.set(pod('a', { ready: false, annotations: { 'apisix-drain.io/x': '1' } }))).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(true)
    expect(sink.gone('uid-a', undefined)).to.equal(false)
  })

  it('keeps the labels of a pod as they were before its end, and up to two minutes before it', () => {
    const clock = manualClock()
    const { store, sink } = createPodStore(clock)
    const is = (labelKey: string, ends = false) =>
      sink.set(pod('a', { labelKey, ...(ends && terminating(clock.now())) }))
    const kept = () => store.get(uid('uid-a'))?.labelKey ?? store.gone(uid('uid-a'))?.fact.labelKey
    is('role=replica')
    is('role=primary')
    clock.advance(120_000)
    expect(is('role=primary'), 'the change is settled').to.equal(true)
    expect(is('role=primary')).to.equal(false)
    is('role=none')
    is('role=replica')
    expect(kept(), 'now').to.equal('role=replica')
    clock.advance(119_000)
    is('role=replica', true)
    expect(kept(), 'it ends').to.equal('role=primary')
    is('', true)
    expect(kept(), 'while it ends').to.equal('role=primary')
    sink.gone('uid-a', pod('a', { labelKey: '', ...terminating(clock.now()) }))
    expect(kept(), 'gone').to.equal('role=primary')
  })

  it('remembers the pod ranges (/24 or /64), even after the pods are gone; never the range of a host', () => {
    const { store, sink } = createPodStore(manualClock())
    sink.set(pod('a', { ips: ['10.0.0.7', 'fd00:1::7'] }))
    sink.set(pod('b', { ips: ['10.1.0.1'], hostNetwork: true }))
    sink.gone('uid-a', undefined)
    const hosts = [
      '10.0.0.200',
      '10.0.1.7',
      '10.1.0.2',
      'fd00:1::2:0:9',
      'fd00:1:0:1::7',
      '::1',
      'shop.example',
      '10.0.0'
    ]
    expect(hosts.filter(host => store.isNear(host))).to.deep.equal(['10.0.0.200', 'fd00:1::2:0:9'])
  })

  it('remembers the addresses of past pods until another pod has them; never the address of a host', () => {
    const { store, sink } = createPodStore(manualClock(1000))
    sink.set(pod('a', { ips: ['10.0.0.7'] }))
    sink.set(pod('b', { ips: ['10.1.0.1'], hostNetwork: true }))
    expect(store.endedAt('10.0.0.7')).to.equal(undefined)
    sink.gone('uid-a', undefined)
    sink.gone('uid-b', undefined)
    sink.gone('uid-unseen', pod('unseen', { ips: ['10.0.0.9'] }))
    expect(['10.0.0.7', '10.0.0.9', '10.1.0.1'].map(ip => store.endedAt(ip))).to.deep.equal([
      1000,
      1000,
      undefined
    ])
    sink.set(pod('c', { ips: ['10.0.0.7'] }))
    expect(store.endedAt('10.0.0.7')).to.equal(undefined)
  })

  it('remembers the last state of a removed pod for an hour', () => {
    const clock = manualClock(0)
    const { store, sink } = createPodStore(clock)
    sink.set(pod('a'))
    sink.gone('uid-a', pod('a', { deletionAt: 9 }))
    expect(store.gone(uid('uid-a'))).to.deep.equal({ at: 0, fact: pod('a', { deletionAt: 9 }) })
    clock.advance(3_600_000)
    expect(store.gone(uid('uid-a'))).not.to.equal(undefined)
    clock.advance(1)
    expect(store.gone(uid('uid-a'))).to.equal(undefined)
  })

  it('keeps every index correct after any sequence of events', () => {
    const names = fc.constantFrom('a', 'b', 'c')
    const set = fc
      .record({
        name: names,
        generation: fc.integer({ min: 1, max: 3 }),
        ips: fc.uniqueArray(fc.constantFrom('1', '2', '3'), { maxLength: 2 }),
        hostNetwork: fc.boolean(),
        phase: fc.constantFrom<PodPhase>('Pending', 'Running', 'Failed'),
        deletionAt: fc.constantFrom<number | undefined>(undefined, 7)
      })
      .map(({ name, generation, ...rest }) => pod(name, { uid: uid(`${name}${generation}`), ...rest }))
    const gone = fc
      .tuple(names, fc.integer({ min: 1, max: 3 }))
      .map(([name, generation]) => `${name}${generation}`)
    fc.assert(
      fc.property(fc.array(fc.oneof(set, gone), { maxLength: 30 }), events => {
        const { store, sink } = createPodStore(manualClock())
        for (const event of events) {
          if (typeof event === 'string') sink.gone(event, undefined)
          else sink.set(event)
        }
        const all = [...store.values()]
        expect(new Set(all.map(p => p.name)).size).to.equal(all.length)
        for (const p of all) {
          expect(store.get(p.uid)).to.equal(p)
          expect(store.byName('shop', p.name)).to.equal(p)
        }
        for (const ip of ['1', '2', '3']) {
          const owners = all.filter(p => p.ips.includes(ip) && (p.hostNetwork || !isOver(p)))
          expect(store.byIp(ip)).to.have.members(owners)
        }
        expect(store.ending()).to.have.members(all.filter(saysThatItEnds))
      })
    )
  })
})
