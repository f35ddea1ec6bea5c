import { expect } from 'chai'
import { createDrainStore } from '../../../agent/round/gather/sources.ts'
import { drainOf, drainsOf, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'
import { worldOf } from '../../build/world.ts'

describe('drain store', () => {
  const old = pod('old', { ...terminating(0), ips: ['10.0.0.1'] })
  const drain = drainOf(seen(old))

  it('reports an address as ending only for the drain that has it', () => {
    const store = createDrainStore(worldOf([holder('a', ['10.0.0.1:8080', '10.0.0.2:8080'])], [old]))
    expect(store.isEnding(old.uid, '10.0.0.1:8080')).to.equal(false)
    store.replace(drainsOf([drain]), [], 0)
    expect(store.isEnding(old.uid, '10.0.0.1:8080')).to.equal(true)
    expect(store.isEnding(old.uid, '10.0.0.2:8080')).to.equal(false)
    expect(store.isEnding('another' as typeof old.uid, '10.0.0.1:8080')).to.equal(false)
  })

  it('reports no address as ending once another pod has it', () => {
    const next = pod('next', { ips: ['10.0.0.1'] })
    const store = createDrainStore(worldOf([holder('a', ['10.0.0.1:8080'])], [old, next]))
    store.replace(drainsOf([drain]), [], 0)
    expect(store.isEnding(old.uid, '10.0.0.1:8080')).to.equal(false)
  })

  it('knows the addresses that take over, and for a while those that did', () => {
    const store = createDrainStore(worldOf([], [old]))
    const entry = {
      uid: old.uid,
      nodes: ['10.0.0.1'],
      state: 'sealed',
      watch: false,
      successors: { '80': ['10.0.0.2:80', '[fd00::2]:80'] }
    } as const
    store.replace(new Map(), [entry], 1000)
    store.replace(new Map(), [], 2000)
    expect(['10.0.0.1', '10.0.0.2', 'fd00::2'].filter(host => store.tookOver(host))).to.deep.equal([
      '10.0.0.2',
      'fd00::2'
    ])
    store.replace(new Map(), [], 31_000)
    expect(store.tookOver('10.0.0.2')).to.equal(false)
  })
})
