import { expect } from 'chai'
import { gather, gathering } from '../../../../agent/round/gather/gather.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import type { Sources } from '../../../../agent/round/gather/sources.ts'
import { drainOf, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const BEGAN = 1000

describe('evidence about a pod that no holder lists', () => {
  const old = pod('old', { ...terminating(BEGAN), ips: ['10.0.0.1'] })
  const drain = drainOf(seen(old), BEGAN)

  /** Rounds about `old` with one memory. Each returns since when no holder lists the pod. */
  function rounds() {
    const memory = createMemories().of(old.uid)
    return (now: number, { readAt = now, tookOver = false, nodes = [] as string[] } = {}) => {
      const sources = {
        cluster: {
          gateways: () => [],
          parts: () => [],
          pods: { hosts: () => [] },
          slices: { listing: () => [], servicesOf: () => [] },
          services: { byName: () => undefined, aliasesTo: () => [], isNodePort: () => false }
        },
        inventory: {
          readAt: () => readAt,
          problem: () => '',
          names: () => [],
          discovered: () => [],
          holders: () => new Map(),
          isL4: () => false
        },
        writer: { status: () => undefined }
      } as unknown as Sources
      const shared = gathering(sources, {
        world: worldOf([holder('web', nodes)], [old]),
        drains: drainsOf([drain]),
        tookOver: host => tookOver && host === '10.0.0.1',
        before: { changes: [], kept: [] },
        now,
        gatewaysAreOld: false
      })
      return gather(drain, memory, shared).absentSince
    }
  }

  it('counts from the first round that sees this in a listing from after the end began', () => {
    const round = rounds()
    expect(round(1001, { readAt: BEGAN - 1 })).to.equal(undefined)
    expect(round(1002)).to.equal(1002)
    expect(round(1003)).to.equal(1002)
  })

  it('is none if a holder has listed it since', () => {
    const round = rounds()
    expect(round(1001, { nodes: ['10.0.0.1:8080'] })).to.equal(undefined)
    expect(round(1002)).to.equal(undefined)
  })

  it('is none if it took over from another pod, even if no entry names it any more', () => {
    const round = rounds()
    expect(round(1001, { tookOver: true })).to.equal(undefined)
    expect(round(1002)).to.equal(undefined)
  })
})
