import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import { holdersOnSuccessors } from '../../../../agent/report/show/build-snapshot.ts'
import { drainOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'

describe('holders on successors', () => {
  const A = '10.0.0.1:8080'
  const B = '10.0.0.2:8080'
  const NEXT = '10.0.0.9:8080'
  const ended = (name: string, since: number): Drain => drainOf(seen(pod(name, terminating(0))), since)

  function found(
    listed: Holder,
    ends: readonly (readonly [Drain, string])[],
    differs: { readonly sealing?: boolean; readonly removedAt?: number; readonly successors?: string[] } = {}
  ) {
    const memories = createMemories()
    for (const [{ uid }, node] of ends) {
      const memory = memories.of(uid)
      memory.sealing = differs.sealing ?? true
      memory.successors = { '8080': differs.successors ?? [NEXT] }
      memory.places.set(node, { holder: listed, node, removedAt: differs.removedAt })
    }
    const inventory = { holders: () => new Map([[listed.key, listed]]) }
    return holdersOnSuccessors(
      ends.map(([drain]) => drain),
      uid => memories.of(uid),
      inventory
    ).get(listed.key)
  }

  it('are those whose nodes are all sealed, since the last of their pods began to end', () => {
    const ends = [[ended('a', 100), A] as const, [ended('b', 300), B] as const]
    expect(found(holder('web', [A, B]), ends)).to.deep.equal({ since: 300, nodes: [NEXT] })
  })

  it('are also those without a successor: nobody serves', () =>
    expect(found(holder('web', [A]), [[ended('a', 100), A]], { successors: [] })).to.deep.equal({
      since: 100,
      nodes: []
    }))

  it('are not those that list a node that serves', () =>
    expect(found(holder('web', [A, B]), [[ended('a', 100), A]])).to.equal(undefined))

  it('a node of weight 0 does not count while others have a weight', () => {
    const nodes = holder('web', [A, B]).nodes.map(node => (node.key === B ? { ...node, weight: 0 } : node))
    expect(found(holder('web', [], { nodes }), [[ended('a', 100), A]])).to.include({ since: 100 })
  })

  it('are none before the seal, after the owner has removed the node, and by discovery', () => {
    const ends = [[ended('a', 100), A]] as const
    const web = holder('web', [A])
    expect(found(web, ends, { sealing: false })).to.equal(undefined)
    expect(found(web, ends, { removedAt: 200 })).to.equal(undefined)
    const discovery = { type: 'kubernetes', service: 'shop/web:http' }
    expect(found(holder('web', [A], { discovery }), ends)).to.equal(undefined)
  })
})
