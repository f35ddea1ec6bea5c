import { expect } from 'chai'
import type { EndpointFact, PodFact } from '../../../../agent/rules/drain/facts.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { createBehind } from '../../../../agent/report/behind/behind-view.ts'
import { holder } from '../../../build/holder.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod } from '../../../build/pod.ts'
import { endpoint, slice } from '../../../build/service.ts'

const WEB = { namespace: 'shop', name: 'web' }

describe('how far holders are behind Kubernetes', () => {
  function rig({ owner = 'ingress-controller-2' }: { owner?: Holder['owner'] } = {}) {
    const clock = manualClock()
    const old = pod('old', { ips: ['10.0.0.1'], startedAt: clock.now() - 3_600_000 })
    let pods: readonly PodFact[] = [old]
    let unready: readonly string[] = []
    let holders: readonly Holder[] = [listing('web', 40, '10.0.0.1')]
    let workers = [{ revisions: { upstreams: 40 }, applied: 1 }]
    let asked = 0
    let readAt = clock.now()
    let slices: readonly EndpointFact[] = []
    let listings = 0
    let version = 0
    let reads = 0
    const behind = createBehind({
      clock,
      sources: {
        cluster: {
          gateways: () => [
            { id: 'g', name: 'apisix-0', ready: true, terminating: false },
            { id: 'new', name: 'apisix-9', ready: false, terminating: false }
          ],
          pods: {
            get: (uid: string) => pods.find(one => one.uid === uid),
            byIp: (ip: string) => pods.filter(({ ips }) => ips.includes(ip)),
            becameReady: () => new Map()
          },
          slices: {
            servicesOf: () => [WEB],
            serving: () => slices.flatMap(({ endpoints }) => endpoints.filter(({ serving }) => serving)),
            of: () => ((reads += 1), slices),
            version: () => version
          }
        },
        inventory: {
          holders: () => new Map(holders.map(one => [one.key, one])),
          byHost: (ip: string) => holders.filter(({ nodes }) => nodes.some(({ host }) => host === ip)),
          version: () => version,
          readAt: () => readAt,
          refresh: async () => void (listings += 1)
        },
        barrier: {
          state: () => ({
            problem: '',
            lastSuccessAt: asked,
            lastAttemptAt: clock.now(),
            status: { now: asked / 1000, workers }
          })
        },
        probe: { hurry: () => {}, sighting: () => undefined },
        mode: { current: () => ({ mode: 'etcd' }) },
        sync: undefined
      } as never
    })
    function listing(id: string, revision: number, ...hosts: string[]): Holder {
      return {
        ...holder(
          id,
          hosts.map(host => `${host}:8080`),
          { revision }
        ),
        owner
      }
    }
    const endpoints = (): void => {
      version += 1
      const shown = pods.map(({ uid, ips: [address = ''], deletionAt }) =>
        endpoint(uid, {
          address,
          ready: !unready.includes(address) && deletionAt === undefined,
          terminating: deletionAt !== undefined
        })
      )
      slices = [slice('web-1', shown, { ports: [{ name: '', port: 8080 }] })]
    }
    endpoints()
    const round = (ms = 500, listed = true) => {
      clock.advance(ms)
      asked = clock.now()
      behind.observer.round()
      // A listing begins now, and the next round shows it.
      if (listed) readAt = clock.now() + 1
      clock.advance(300)
      behind.observer.round()
      return behind.of('upstreams/web')
    }
    round()
    round()
    return {
      behind,
      clock,
      round,
      listings: () => listings,
      arrives: (name: string, ip: string) => {
        pods = [...pods, pod(name, { ips: [ip], startedAt: clock.now() - 1000 })]
        endpoints()
      },
      ends: (ip: string) => {
        pods = pods.map(one => (one.ips.includes(ip) ? { ...one, deletionAt: clock.now() } : one))
        endpoints()
      },
      isGone: (ip: string) => {
        pods = pods.filter(one => !one.ips.includes(ip))
        endpoints()
      },
      notReady: (...ips: string[]) => {
        unready = ips
        endpoints()
      },
      reads: () => reads,
      writes: (revision: number, ...hosts: string[]) => {
        version += 1
        holders = [listing('web', revision, ...hosts)]
      },
      alsoHeld: (id: string, ...hosts: string[]) => {
        version += 1
        holders = [...holders, listing(id, 7, ...hosts)]
      },
      applies: (revision: number) =>
        (workers = [{ revisions: { upstreams: revision }, applied: clock.now() / 1000 }])
    }
  }

  it('blames the owner from the change on, until it has written, and then only gateways that were read', () => {
    const { behind, round, arrives, clock, writes, applies } = rig()
    const from = clock.now()
    arrives('fresh', '10.0.0.2')
    expect(round(200, false).behind, 'the listing is older than the change').to.equal(null)
    const late = round(45_000)
    expect(behind.lackedBy()).to.deep.equal(new Map([['10.0.0.2', ['upstreams/web']]]))
    expect(late.behind).to.include({ cause: 'owner' })
    expect(late.behind!.since - from).to.be.below(600)
    expect(late.missing.map(({ node }) => node)).to.deep.equal(['10.0.0.2:8080'])
    expect(late.notReady).to.deep.equal([])
    writes(41, '10.0.0.1', '10.0.0.2')
    const written = round()
    expect(written.missing).to.deep.equal([])
    expect(behind.lackedBy().size).to.equal(0)
    expect(written.behind).to.include({ cause: 'gateways', since: late.behind!.since })
    expect(written.behind!.gateways).to.deep.equal([
      {
        gateway: 'apisix-0',
        since: late.behind!.since,
        why: 'a worker has applied revision 40, and not 41'
      }
    ])
    applies(41)
    expect(round().behind).to.equal(null)
  })

  it('still blames the owner after two minutes, and for later pods when every pod that it lists is gone', () => {
    const { round, arrives, ends, isGone } = rig()
    arrives('fresh', '10.0.0.2')
    round()
    round(200_000)
    ends('10.0.0.1')
    isGone('10.0.0.1')
    round()
    arrives('fresher', '10.0.0.3')
    expect(round().missing.map(({ node }) => node)).to.deep.equal(['10.0.0.2:8080', '10.0.0.3:8080'])
  })

  it('blames the owner also while nothing is Ready: no later rollout resets its clock (E3)', () => {
    const { round, arrives, isGone } = rig()
    arrives('fresh', '10.0.0.2')
    const { owner } = round(4000).behind!
    for (const ip of ['10.0.0.1', '10.0.0.2']) isGone(ip)
    expect(round(4000).behind).to.include({ cause: 'owner', owner })
  })

  it('blames the owner for an endpoint that is not Ready any more, but only an ingress controller', () => {
    for (const owner of ['ingress-controller-2', 'unknown'] as const) {
      const { round, arrives, writes, applies, notReady } = rig({ owner })
      arrives('fresh', '10.0.0.2')
      writes(41, '10.0.0.1', '10.0.0.2')
      applies(41)
      round()
      notReady('10.0.0.2')
      const late = round(2000)
      expect(late.notReady.length, owner).to.equal(owner === 'unknown' ? 0 : 1)
      expect(late.missing, owner).to.deep.equal([])
      notReady()
      expect(round().behind, owner).to.equal(null)
    }
  })

  it('leaves pods that end to their drains', () => {
    const { round, arrives, writes, applies, ends } = rig()
    arrives('fresh', '10.0.0.2')
    writes(41, '10.0.0.1', '10.0.0.2')
    applies(41)
    round()
    ends('10.0.0.1')
    expect(round(2000).behind).to.equal(null)
  })

  it('expects no endpoint that another holder of the same Service lists', () => {
    const { round, arrives, alsoHeld } = rig()
    alsoHeld('canary', '10.0.0.2')
    arrives('fresh', '10.0.0.2')
    expect(round().missing).to.deep.equal([])
  })

  it('is over after two minutes for what the owner left out when it added another node: a part of the Service, on purpose', () => {
    const { round, arrives, writes, applies } = rig()
    arrives('fresh', '10.0.0.2')
    round()
    arrives('fresher', '10.0.0.3')
    writes(41, '10.0.0.1', '10.0.0.3')
    applies(41)
    expect(round(60_000).missing.map(({ node }) => node)).to.deep.equal(['10.0.0.2:8080'])
    round(61_000)
    expect(round()).to.deep.include({ missing: [], behind: null })
  })

  it('costs the same for any number of holders while nothing changes', () => {
    const { round, alsoHeld, reads, arrives } = rig()
    for (let i = 0; i < 400; i++) alsoHeld(`more-${i}`, '10.0.0.1')
    for (let i = 0; i < 20; i++) round()
    const before = reads()
    round()
    const idle = reads() - before
    expect(idle, 'two looks, each with some in turn').to.be.within(1, 120)
    arrives('fresh', '10.0.0.2')
    const then = reads()
    round()
    expect(reads() - then, 'a change is seen by all').to.be.above(400)
  })

  it('has the holders listed again every 2 s, and seldom if nothing changes for long', () => {
    const { round, arrives, listings } = rig()
    expect(listings()).to.equal(0)
    arrives('fresh', '10.0.0.2')
    for (let i = 0; i < 10; i++) round(200)
    expect(listings()).to.be.within(2, 4)
    round(600_000)
    const before = listings()
    for (let i = 0; i < 20; i++) round(200)
    expect(listings() - before).to.be.below(2)
  })
})
