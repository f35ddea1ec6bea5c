import { expect } from 'chai'
import { drainView, holdersOnSuccessors } from '../../../../agent/report/show/build-snapshot.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { waitingDrain, waitingView } from '../../../build/snapshot.ts'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { createStatuses } from '../../../../agent/round/gather/drain-status.ts'
import { drainOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { createHooksView } from '../../../../agent/report/show/views.ts'

describe('snapshot', () => {
  it('shows a drain', () => {
    const view = waitingView()
    expect(view).to.deep.include({
      pod: 'web-1',
      phase: 'draining',
      hooks: 0,
      why: 'the removal is being written'
    })
    expect(view.verdict).to.deep.equal({ kind: 'waiting', grade: null, places: null, lastEndpoint: false })
    expect(view.gateways.map(gateway => gateway.name)).to.deep.equal(['apisix-0'])
  })

  it('shows every phase of a drain', () => {
    const base = waitingDrain()
    const proven = {
      kind: 'proven',
      grade: 'observed',
      places: 2,
      removedAt: 1,
      forced: false,
      succeeded: [],
      at: 5,
      why: 'seen',
      gateways: [{ name: 'apisix-0', grade: 'observed', at: 1, why: '' }],
      holders: []
    } as const
    const phases: Drain[] = [
      { ...base, phase: 'proven', at: 5, verdict: proven },
      { ...base, phase: 'gone', at: 9, verdict: proven },
      { ...base, phase: 'undone', at: 5, why: 'the container is back' }
    ]
    const drains = phases.map(drain => drainView(drain, createStatuses().of(base.uid)))
    expect(drains.map(drain => drain.verdict)).to.deep.equal([
      { kind: 'proven', grade: 'observed', places: 2, lastEndpoint: false },
      { kind: 'proven', grade: 'observed', places: 2, lastEndpoint: false },
      null
    ])
    expect(drains.map(drain => drain.why)).to.deep.equal(['seen', 'seen', 'the container is back'])
  })
})

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
    const statuses = createStatuses()
    for (const [{ uid }, node] of ends) {
      const status = statuses.of(uid)
      status.sealing = differs.sealing ?? true
      status.successors = { '8080': differs.successors ?? [NEXT] }
      status.places.set(node, { holder: listed, node, removedAt: differs.removedAt })
    }
    const inventory = { holders: () => new Map([[listed.key, listed]]) }
    return holdersOnSuccessors(
      ends.map(([drain]) => drain),
      uid => statuses.of(uid),
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

  it('are none before the seal, and after the owner has removed the node', () => {
    const ends = [[ended('a', 100), A]] as const
    const web = holder('web', [A])
    expect(found(web, ends, { sealing: false })).to.equal(undefined)
    expect(found(web, ends, { removedAt: 200 })).to.equal(undefined)
  })
})

describe('hooks of routed workloads', () => {
  const listed = '10.1.0.1'
  const view = (pods: readonly PodFact[], readAt: number | 'never' = 1) =>
    createHooksView(
      {
        cluster: { pods: { values: () => pods } },
        inventory: {
          byHost: host => (host === listed ? [{} as never] : []),
          readAt: () => (readAt === 'never' ? undefined : readAt)
        }
      },
      { now: () => 0 }
    )()
  const web = (name: string, differs: Partial<PodFact> = {}): PodFact => ({
    ...pod(name),
    namespace: 'shop',
    ready: true,
    ips: [listed],
    owner: 'ReplicaSet/web-5d7f9c',
    ...differs
  })

  it('names those without a hook, without a fallback, and with a container without a hook, by Deployment', () => {
    const pods = [
      web('a'),
      web('b', { owner: 'ReplicaSet/web-77aa' }),
      web('c', { owner: 'StatefulSet/db', hook: 'bare' }),
      web('d', { owner: undefined, hook: 'safe' }),
      web('e', { owner: 'DaemonSet/edge', hook: 'part' })
    ]
    expect(view(pods)).to.deep.equal({
      routed: 4,
      without: [{ name: 'shop/Deployment/web', pods: 2 }],
      bare: [{ name: 'shop/StatefulSet/db', pods: 1 }],
      early: [{ name: 'shop/DaemonSet/edge', pods: 1 }],
      counts: { without: 1, bare: 1, early: 1 }
    })
  })

  it('counts only pods that serve, and that a holder lists', () => {
    const others = [
      web('a', { ips: ['10.1.0.2'] }),
      web('b', { ready: false }),
      web('c', { hostNetwork: true }),
      web('d', terminating(5))
    ]
    expect(view(others).routed).to.equal(0)
    expect(view([web('a')], 'never').routed).to.equal(0)
  })

  it('names the first 20, and counts all', () => {
    const many = Array.from({ length: 30 }, (_, i) => web(`p${i}`, { owner: `StatefulSet/s${i}` }))
    const { without, counts } = view(many)
    expect([without.length, counts.without]).to.deep.equal([20, 30])
  })
})
