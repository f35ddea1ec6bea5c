import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { Sighting } from '../../../../agent/gateway/apisix/control-api.ts'
import { createDrift } from '../../../../agent/report/behind/drift.ts'
import type { Memory } from '../../../../agent/round/gather/memory.ts'
import type { Ghost } from '../../../../agent/rules/members/ghost-nodes.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { holder } from '../../../build/holder.ts'

const NOW = 1_000_000

describe('drift', () => {
  const listing = (id: string, ...hosts: string[]): Holder =>
    holder(
      id.replace('upstreams/', ''),
      hosts.map(host => `${host}:8080`)
    )

  function setUp(
    survey?: { sighting(): Sighting | undefined },
    ghosts: Record<string, readonly Ghost[]> = {}
  ) {
    const drift = createDrift({
      survey,
      upkeep: { ghosts: () => new Map(Object.entries(ghosts)) },
      cluster: { gateways: () => [{ id: 'g', name: 'apisix-0', ready: true }] }
    } as never)
    const memories = new Map<string, Memory>()
    const look = (holders: Holder[], now: number, drains: Drain[] = [], readAt = now + 1) =>
      drift.look({ holders, drains, memory: uid => memories.get(uid)!, readAt, now })
    return { look, memories, drift }
  }
  it('compares each gateway with the Admin API, and uses only later reads', () => {
    let sighting: Sighting = {
      beganAt: NOW - 10,
      holders: new Map([['upstreams/web', ['10.0.0.1:8080', '10.0.0.7:8080']]])
    }
    const { look, drift } = setUp({ sighting: () => sighting })
    const web = listing('upstreams/web', '10.0.0.1')
    expect(look([web], NOW)('upstreams/web').atGateways).to.deep.equal([])
    sighting = { ...sighting, beganAt: NOW + 1000 }
    expect(look([web], NOW + 1100)('upstreams/web').atGateways).to.deep.equal([
      { gateway: 'apisix-0', kind: 'stale', node: '10.0.0.7:8080', since: NOW }
    ])
    expect(drift.counts(NOW + 1100)).to.deep.include({
      where: 'gateway',
      kind: 'stale',
      nodes: 1,
      oldestMs: 1100
    })
    sighting = { beganAt: NOW + 2000, holders: new Map([['upstreams/web', ['10.0.0.1:8080']]]) }
    expect(look([web], NOW + 2100)('upstreams/web').atGateways).to.deep.equal([])
    sighting = { beganAt: NOW + 3000, holders: new Map() }
    look([web], NOW + 3100)
    sighting = { beganAt: NOW + 4000, holders: new Map() }
    expect(look([web], NOW + 4100)('upstreams/web').atGateways).to.deep.equal([
      { gateway: 'apisix-0', kind: 'missing', node: '10.0.0.1:8080', since: NOW + 3100 }
    ])
  })

  it('reports a ghost if a node outlives the pod that we drained', () => {
    const { look, memories } = setUp()
    const web = listing('upstreams/web', '10.0.0.1', '10.0.0.9')
    const gone = { uid: 'uid-c', phase: 'gone', at: NOW - 500 } as Drain
    memories.set('uid-c', {
      places: new Map([
        ['1', { holder: web, node: '10.0.0.9:8080', removedAt: undefined }],
        ['2', { holder: listing('upstreams/other'), node: '10.0.0.9:8080', removedAt: NOW - 100 }]
      ])
    } as unknown as Memory)
    const differs = look([web], NOW, [gone])
    expect(differs('upstreams/web').ghosts).to.deep.equal([{ node: '10.0.0.9:8080', since: NOW - 500 }])
    expect(differs('upstreams/other').ghosts).to.deep.equal([])
    const proven = { ...gone, phase: 'proven' } as Drain
    expect(look([web], NOW, [proven])('upstreams/web').ghosts).to.deep.equal([])
  })

  it('reports a ghost also if no agent drained the pod, while it is listed in the Admin API and at the gateways', () => {
    const web = listing('upstreams/web', '10.0.0.1', '10.0.0.9')
    const [, nobodys] = web.nodes
    const [gone] = listing('upstreams/web', '10.0.0.8').nodes
    const found = [
      { node: nobodys!, evidence: 'no pod has had its address for 600 s', since: NOW - 600_000 },
      { node: gone!, evidence: 'its pod was seen to end', since: NOW - 1000 }
    ]
    const sighting = () => ({
      beganAt: NOW + 10,
      holders: new Map([['upstreams/web', ['10.0.0.1:8080', '10.0.0.9:8080']]])
    })
    const { look, drift } = setUp({ sighting }, { 'upstreams/web': found })
    const differs = look([web], NOW)('upstreams/web')
    expect(differs.ghosts).to.deep.equal([{ node: '10.0.0.9:8080', since: NOW - 600_000 }])
    expect(differs.atGateways).to.deep.equal([
      { gateway: 'apisix-0', kind: 'ghost', node: '10.0.0.9:8080', since: NOW }
    ])
    expect(drift.counts(NOW)).to.deep.include({ where: 'admin', kind: 'ghost', nodes: 1, oldestMs: 0 })
  })

  it('spreads many holders over several passes', () => {
    const { look } = setUp({ sighting: () => ({ beganAt: NOW + 10, holders: new Map() }) })
    const many = Array.from({ length: 600 }, (_, i) => listing(`upstreams/${i}`, '10.0.0.1'))
    const found = () => {
      const differs = look(many, NOW)
      return many.filter(({ key }) => differs(key).atGateways.length > 0).length
    }
    expect([found(), found(), found(), found()]).to.deep.equal([250, 500, 600, 600])
  })
})
