import { expect } from 'chai'
import { addressOf } from '../../../../agent/gateway/apisix/holders.ts'
import {
  settled,
  successorsOf,
  type DesiredDrain,
  type InheritedEntry
} from '../../../../agent/gateway/barrier/desired-entry.ts'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { EndpointFact, NodeKey, PodFact, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { NO_SUCCESSORS } from '../../../../agent/rules/plan/successors.ts'
import { createLingering, predecessorOf, takePredecessors } from '../../../../agent/round/entries/desired.ts'
import { createSuccession } from '../../../../agent/round/entries/succession.ts'
import { drainOf, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { sliceOf } from '../../../build/service.ts'
import { worldOf } from '../../../build/world.ts'

const web = (name: string, ip: string, differs: Partial<PodFact> = {}) =>
  pod(name, { ips: [ip], owner: 'ReplicaSet/web-1a', ...differs })
const OLD = '10.0.0.1'
const B = '10.0.0.2'
const STANDING = [{ service: 'web', portName: 'http', port: 8080 }]

/** Makes a cluster of these pods. The slice of the Service `web` has the pods that are Ready and do not end. */
function clusterOf(pods: readonly PodFact[]) {
  const slice = sliceOf('web', pods)
  return {
    pods: {
      get: (uid: string) => pods.find(one => one.uid === uid),
      byIp: (ip: string) => pods.filter(({ ips }) => ips.includes(ip))
    },
    slices: { of: () => [slice], listing: () => [slice] },
    parts: () => ['pods', 'endpointslices'].map(name => ({ name, state: 'live' })),
    serverBehindMs: () => 0
  } as never
}

describe('the successors of a pod that nothing can follow yet', () => {
  const old = web('old', OLD, terminating(0))

  /** Returns the successors in the entry of `old`, if that entry named the pod at `B` before. */
  function named(other: PodFact, phase?: Drain['phase'], listed = [old, other]) {
    const pods = [old, other]
    const drains = drainsOf([
      drainOf(seen(old)),
      ...(phase === undefined
        ? []
        : [{ ...drainOf(seen(other, { gone: phase === 'gone' })), phase } as Drain])
    ])
    const { slices } = clusterOf(listed) as { slices: object }
    const cluster = { ...(clusterOf(pods) as object), slices } as never
    const succession = createSuccession(cluster, worldOf([holder('web', [`${OLD}:8080`])], pods))
    return succession.of(old, { standing: STANDING, successors: { 8080: [`${B}:8080`] } }, drains)
  }
  const ending = (differs: Partial<PodFact> = {}) => web('b', B, { ...terminating(0), ...differs })

  it('are found in a later round if the watch of slices is ahead of that of pods', () => {
    const next = web('b', B)
    let known: readonly PodFact[] = [old]
    const cluster = clusterOf([old, next]) as { pods: { get(uid: string): PodFact | undefined } }
    const pods = { ...cluster.pods, get: (uid: string) => known.find(one => one.uid === uid) }
    const world = worldOf([holder('web', [`${OLD}:8080`])], [old, next])
    const succession = createSuccession({ ...cluster, pods } as never, world)
    const round = () => {
      const found = succession.of(old, { standing: STANDING, successors: NO_SUCCESSORS }, drainsOf([]))
      succession.renew()
      return found
    }
    expect(round()).to.equal(NO_SUCCESSORS)
    known = [old, { ...next, ips: [], ready: false }]
    expect(round(), 'a pod without an address yet').to.equal(NO_SUCCESSORS)
    known = [old, next]
    expect(round()).to.deep.equal({ 8080: [`${B}:8080`] })
  })

  it('may be none before the pod is gone: then it is held as the last endpoint for no longer than that helps', () => {
    const [ended, workload] = [{ ...terminating(0) }, 'StatefulSet.apps/db']
    const hold = (differs: Partial<PodFact>, ...others: PodFact[]) => {
      const last = web('old', OLD, { ...ended, ...differs })
      const pods = [last, ...others]
      const succession = createSuccession(clusterOf(pods), worldOf([], pods))
      return succession.holdOf(last, { standing: STANDING, successors: NO_SUCCESSORS }, 5000)
    }
    for (const kind of ['StatefulSet.apps', 'StatefulSet.apps.kruise.io', 'DaemonSet.apps', 'Job.batch'])
      expect(hold({ workload: `${kind}/db` }), kind).to.equal(0)
    for (const kind of [
      'ReplicaSet.apps',
      'ReplicationController',
      'CloneSet.apps.kruise.io',
      'Shop.example.com'
    ])
      expect(hold({ workload: `${kind}/db` }), kind).to.equal(60_000)
    expect(hold({ workload: undefined }), 'nobody knows who makes the next one').to.equal(60_000)
    expect(hold({ workload }, web('b', B, ended)), 'another one that ends').to.equal(0)
    expect(hold({ workload }, web('b', B)), 'its owner may be late').to.equal(5000)
    expect(hold({ workload }, web('b', B), web('c', '10.0.0.3', { ready: false }))).to.equal(60_000)
    expect(hold({ workload, deletionAt: undefined }), 'a container that restarts').to.equal(Infinity)
  })

  it('may come unseen while a watch is down: the last endpoint is held', () => {
    const last = web('old', OLD, { ...terminating(0), workload: 'StatefulSet.apps/db' })
    const parts = () => [{ name: 'pods', state: 'stale' }]
    const succession = createSuccession(
      { ...(clusterOf([last]) as object), parts } as never,
      worldOf([], [last])
    )
    expect(succession.holdOf(last, { standing: STANDING, successors: NO_SUCCESSORS }, 5000)).to.equal(60_000)
  })

  it('are no candidates that changed since: no slice shows a new label, owner, annotation or address', () => {
    const changes: Partial<PodFact>[] = [
      { labelKey: 'role=replica' },
      { owner: 'ReplicaSet/api-1a' },
      { annotations: { 'apisix-drain.io/successors': 'false' } },
      { ips: ['10.0.0.9'] },
      { ready: false }
    ]
    for (const change of changes) {
      const pods = [old, web('b', B)]
      const cluster = clusterOf(pods)
      const succession = createSuccession(cluster, worldOf([holder('web', [`${OLD}:8080`])], pods))
      const memory = { standing: STANDING, successors: NO_SUCCESSORS }
      const round = () => {
        const found = succession.of(old, memory, drainsOf([]))
        succession.renew()
        return found
      }
      expect(round()).to.deep.equal({ 8080: [`${B}:8080`] })
      pods[1] = { ...web('b', B), startedAt: 1 }
      expect(round(), 'a change that does not matter').to.deep.equal({ 8080: [`${B}:8080`] })
      pods[1] = web('b', B, change)
      expect(round(), JSON.stringify(change)).to.equal(NO_SUCCESSORS)
    }
  })

  it('are the last ones while they end', () => {
    for (const phase of ['draining', 'proven', 'expired'] as const)
      expect(named(ending(), phase), phase).to.deep.equal({ 8080: [`${B}:8080`] })
  })

  it('are none once they are gone, or were never draining', () => {
    expect(named(ending(), 'gone')).to.equal(NO_SUCCESSORS)
    expect(named(web('b', B, { ready: false }))).to.equal(NO_SUCCESSORS)
  })

  it('are the last ones while they are Ready, although no slice lists them any more', () => {
    expect(named(web('b', B), undefined, [old])).to.deep.equal({ 8080: [`${B}:8080`] })
    expect(named(web('b', B, { ready: false }), undefined, [old])).to.equal(NO_SUCCESSORS)
    expect(named(ending(), undefined, [old]), 'it ends without a drain').to.equal(NO_SUCCESSORS)
  })

  it('are none that refuse to be one', () => {
    const refuses = { annotations: { 'apisix-drain.io/successors': 'false' } }
    expect(named(web('b', B, refuses))).to.equal(NO_SUCCESSORS)
    expect(named(ending(refuses), 'draining')).to.equal(NO_SUCCESSORS)
  })

  it('are never another workload or another version that has their address now', () => {
    expect(named(ending({ owner: 'ReplicaSet/api-1a' }), 'draining')).to.equal(NO_SUCCESSORS)
    expect(named(ending({ labelKey: 'version=v2' }), 'draining')).to.equal(NO_SUCCESSORS)
  })
})

describe('a lingering entry', () => {
  it('names the successors that there are now, so never a reused address', () => {
    const old = web('old', OLD, terminating(0))
    let pods = [web('b', B)]
    const world = () => worldOf([], pods)
    const succession = createSuccession(
      {
        pods: { get: (uid: string) => pods.find(one => one.uid === uid), byIp: () => [] },
        slices: { of: () => (clusterOf(pods) as { slices: { of(): EndpointFact[] } }).slices.of() }
      } as never,
      { ...world(), ownersOf: ip => pods.filter(({ ips }) => ips.includes(ip)) }
    )
    const lingering = createLingering(succession)
    const memory = { ports: [], standing: STANDING, successors: { 8080: [`${B}:8080`] } }
    lingering.add(drainOf(seen(old, { gone: true })), memory, 0)
    const named = () =>
      lingering.entries(world(), new Map(), { now: 1, isChosen: () => false, isNews: true })[0]?.successors
    expect(named()).to.deep.equal({ 8080: [`${B}:8080`] })
    expect(named()).to.equal(named())
    succession.renew()
    pods = [web('x', B, { owner: 'ReplicaSet/api-1a' }), web('c', '10.0.0.3')]
    expect(named()).to.deep.equal({ 8080: ['10.0.0.3:8080'] })
  })
})

describe('the successors that sealed entries have got', () => {
  type Draft = Partial<DesiredDrain> & { readonly names?: readonly number[] }
  let last: readonly DesiredDrain[]
  beforeEach(() => (last = []))
  /** The successors of each entry after a round, or `kept`. Entries name nodes `10.0.0.N:80`. */
  const round = (drafts: Readonly<Record<string, Draft>>, isNews = true): Record<string, string> => {
    const entries = Object.entries(drafts).map(([uid, { names = [], ...differs }]): DesiredDrain => {
      const successors = names.length > 0 ? { 80: names.map(n => `10.0.0.${n}:80`) } : {}
      return {
        uid: uid as PodUid,
        nodes: ['10.0.0.1'],
        state: 'sealed',
        watch: false,
        successors,
        ...differs
      }
    })
    const now = settled(entries, last, isNews)
    const shown = now.map(entry => {
      const nodes = successorsOf(entry).map(node => addressOf(node).host.slice('10.0.0.'.length))
      return [entry.uid, last.includes(entry) ? 'kept' : nodes.join(' ')]
    })
    last = now
    return Object.fromEntries(shown) as Record<string, string>
  }

  it('are replaced if one must go, if all have ended, and in one entry for each that no entry names', () => {
    expect(round({ a: {} })).to.deep.equal({ a: '' })
    expect(round({ a: { names: [9] } }), 'the first one').to.deep.equal({ a: '9' })
    expect(round({ a: { names: [9, 8] }, b: { names: [9, 8] } })).to.deep.equal({ a: 'kept', b: '9 8' })
    const three = { names: [9, 8, 7] }
    expect(round({ b: three, a: three }), 'the one that names the fewest').to.deep.equal({
      b: 'kept',
      a: '9 8 7'
    })
    const five = { names: [9, 8, 7, 6, 5] }
    expect(round({ a: five, b: { ...five, frozen: true } })).to.deep.equal({ a: '9 8 7 6 5', b: '9 8' })
    expect(round({ a: { names: [8] }, b: { names: [9, 8] } }), 'one is lost').to.deep.equal({
      a: '8',
      b: '9 8'
    })
    expect(round({ a: {}, b: { names: [9, 8] } }), 'without any').to.deep.equal({ a: '', b: 'kept' })
  })

  it('stay while a lost one has an entry, also of its port alone: the plugin follows that entry, if the chain is short', () => {
    round({ a: { names: [9, 8] } })
    expect(round({ a: { names: [8] }, b: { nodes: ['10.0.0.9'] } })).to.deep.equal({ a: 'kept', b: '' })
    expect(round({ a: { names: [8] }, b: { nodes: ['10.0.0.9:80'] } })).to.deep.equal({ a: 'kept', b: '' })
    expect(round({ a: { names: [8] } }), 'that entry is over').to.deep.equal({ a: '8' })
    const seven = { names: [7] }
    const all = { a: seven, b: { nodes: ['10.0.0.8'] }, c: seven }
    expect(round(all), 'all have ended').to.deep.equal({ a: '7', b: '', c: '7' })
    expect(round({ a: {}, b: { nodes: ['10.0.0.7'] } }), 'nothing is better').to.deep.equal({
      a: 'kept',
      b: ''
    })
  })

  it('are those of the round if the entry is not sealed, or has other addresses', () => {
    const ends = { b: { nodes: ['10.0.0.8'] } }
    for (const [was, is] of [
      ['draining', 'draining'],
      ['draining', 'sealed'],
      ['sealed', 'draining']
    ] as const) {
      last = []
      round({ a: { names: [9, 8], state: was } })
      expect(round({ a: { names: [9], state: is }, ...ends }).a, `${was}, ${is}`).to.equal('9')
    }
    round({ a: { names: [9] } })
    expect(round({ a: { names: [8], nodes: ['10.0.0.2'] } }, false)).to.deep.equal({ a: '8' })
    expect(round({ a: { names: [7], nodes: ['10.0.0.2'] } }, false), 'without news').to.deep.equal({
      a: 'kept'
    })
  })
})

describe('the pod of an inherited entry', () => {
  const PUT_AT = 100_000
  const entry: InheritedEntry = {
    uid: pod('old').uid,
    nodes: new Map([[OLD, { 8080: [`${B}:8080`, '10.0.0.3:8080'] }]]),
    putAt: PUT_AT
  }
  const of = (...pods: PodFact[]) => predecessorOf(entry, clusterOf(pods))

  it('is of the workload of its successors, in their Services, with their labels', () => {
    const b = web('b', B, { labelKey: 'app=web' })
    const found = of(b, web('c', '10.0.0.3', { labelKey: 'app=web' }))
    expect(found?.pod).to.include({ uid: entry.uid, owner: b.owner, labelKey: 'app=web' })
    expect(found?.pod.ips).to.deep.equal([OLD])
    expect(found?.nodes).to.deep.equal([OLD])
    expect(found?.standing).to.deep.equal(STANDING)
  })

  it('is unknown if none of them lives any more, or they differ', () => {
    expect(of(web('z', '10.0.0.9'))).to.equal(undefined)
    expect(of(web('b', B, terminating(0)))).to.equal(undefined)
    expect(of(web('b', B), web('c', '10.0.0.3', { owner: 'ReplicaSet/api-1a' }))).to.equal(undefined)
    expect(of(web('b', B), web('c', '10.0.0.3', { labelKey: 'version=v2' }))).to.equal(undefined)
  })

  it('is unknown if the pods at these addresses began after the entry was put: addresses are reused', () => {
    const began = (startedAt: number | undefined) => of({ ...web('b', B), startedAt })
    expect(began(PUT_AT - 1000)?.nodes).to.deep.equal([OLD])
    expect(began(PUT_AT - 999)).to.equal(undefined)
    expect(began(undefined)).to.equal(undefined)
  })

  it('has ended, and so has its address, unless that is its host’s', () => {
    const ended: string[] = []
    const known = clusterOf([web('b', B)]) as Parameters<typeof predecessorOf>[1]
    const pods = { ...known.pods, haveEnded: (ips: Iterable<string>) => ended.push(...ips) }
    const live = ['pods', 'endpointslices'].map(name => ({ name, state: 'live' }))
    const nodes = new Map([...entry.nodes, ['192.168.0.7:8080' as NodeKey, {}]])
    const cluster = { ...known, pods, parts: () => live }
    const barrier = { takeInherited: () => [{ ...entry, nodes }] }
    takePredecessors({ cluster, barrier } as unknown as Parameters<typeof takePredecessors>[0], new Map())
    expect(ended).to.deep.equal([OLD])
  })
})
