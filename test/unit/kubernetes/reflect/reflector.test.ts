import { expect } from 'chai'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'
import type { Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { createPod, credentialsOf, live, startRig, until, type Rig } from './rig.ts'

/** All faults of a watch. After each of them it must report a pod that is created later. */
describe('watch: the reflector', () => {
  let rig: Rig
  afterEach(() => rig.close())

  const start = async (options: Parameters<typeof startRig>[0] = {}) => {
    rig = await startRig({ gatewaySelector: { static: [] }, ...options })
    await live(rig)
    return rig
  }
  const podNames = () => [...rig.cluster.pods.values()].map(p => p.name)
  const tells = async (name: string, withinMs = 3_000) => {
    createPod(rig.kubernetes, name)
    await until(`${name} is seen`, () => rig.cluster.pods.byName('shop', name)?.ready === true, withinMs)
  }
  const lists = () => rig.part('pods').counters.lists
  const many = (count: number) => (kubernetes: Kubernetes) => {
    for (let i = 0; i < count; i += 1) createPod(kubernetes, `web-${i}`)
  }

  for (const [server, options] of [
    ['with WatchList', {}],
    ['without WatchList (422)', { old: true }],
    ['without TLS', { tls: false }]
  ] as const) {
    it(`syncs and follows a server ${server}`, async () => {
      await start({ server: options, before: many(3) })
      expect(podNames()).to.have.length(3)
      await tells('later')
      expect(lists()).to.equal(1)
    })
  }

  it('restarts the list when its pages expire (410), and does not count the first attempt twice', async () => {
    rig = await startRig({
      gatewaySelector: { static: [] },
      server: { old: true },
      before: k => {
        many(1_203)(k)
        // The second page comes so late that the server's history no longer has its version.
        let listed = 0
        k.faults.delay(() => ((listed += 1) === 2 ? (k.faults.expireHistory(), 5) : 0), {
          path: '/api/v1/pods',
          watch: false
        })
      }
    })
    await live(rig)
    expect(rig.part('pods').counters).to.include({ failures: 0, lists: 1 })
    expect(podNames()).to.have.length(1_203)
  })

  it('continues after an ERROR event with 410, without an empty moment', async () => {
    const { kubernetes, cluster, part } = await start({ before: many(2) })
    const sizes = new Set<number>()
    const watcher = setInterval(() => sizes.add(cluster.pods.size), 1)
    kubernetes.faults.expireHistory()
    kubernetes.faults.endWatches()
    await until('listed anew', () => lists() === 2 && part('pods').state === 'live')
    clearInterval(watcher)
    expect([...sizes]).to.deep.equal([2])
    await tells('later')
  })

  it('survives a restart of the API server: facts stay, and pods that ended meanwhile are reported', async () => {
    const { kubernetes, cluster, part } = await start({ before: many(3) })
    const uid = cluster.pods.byName('shop', 'web-1')!.uid
    const restarted = kubernetes.faults.restart({ downMs: 300 })
    kubernetes.store.delete('pods', 'shop', 'web-1', { gracePeriodSeconds: 0 })
    await until('stale', () => part('pods').state === 'stale')
    expect(podNames()).to.have.length(3)
    expect(part('pods').synced).to.equal(true)
    await restarted
    await live(rig)
    await until('the lost pod is told', () => cluster.pods.gone(uid) !== undefined)
    expect(podNames()).to.have.members(['web-0', 'web-2'])
    await tells('later')
  })

  it('reports the old uid as gone and the new one as added when a name was re-created before a relist', async () => {
    const { kubernetes, cluster } = await start({ before: many(1) })
    const first = cluster.pods.byName('shop', 'web-0')!.uid
    const unmute = kubernetes.faults.muteWatches()
    kubernetes.store.delete('pods', 'shop', 'web-0', { gracePeriodSeconds: 0 })
    const second = createPod(kubernetes, 'web-0')
    kubernetes.faults.expireHistory()
    unmute()
    kubernetes.faults.endWatches()
    await until('the new pod', () => cluster.pods.get(second as PodUid) !== undefined)
    await until('the old one is gone', () => cluster.pods.gone(first) !== undefined)
    expect(podNames()).to.deep.equal(['web-0'])
  })

  it('moves to a new connection at GOAWAY, and is never stale for it', async () => {
    const { kubernetes, logged } = await start()
    const before = kubernetes.acceptedCount()
    kubernetes.faults.goAway()
    await tells('later')
    expect(lists()).to.equal(1)
    // The watches of pods, slices and Services share a connection. It ends with its last stream.
    await until(
      'the streams have moved',
      () =>
        kubernetes.acceptedCount() > before &&
        kubernetes.watchCount() === 3 &&
        kubernetes.connectionCount() === 1
    )
    expect(logged.filter(line => line['state'] === 'stale')).to.deep.equal([])
  })

  it('notices a half-open connection in less than 3 s', async () => {
    const { kubernetes, part } = await start()
    const began = performance.now()
    kubernetes.faults.freezeConnections()
    await until('noticed', () => part('pods').state === 'stale', 3_000)
    expect(performance.now() - began).to.be.greaterThan(900)
    await tells('later')
  })

  it('notices a watch that hides objects of the server', async () => {
    const reflector = { heartbeatEveryMs: 50, heartbeatLimitMs: 150 }
    const { kubernetes, part, logged } = await start({ reflector })
    kubernetes.faults.muteWatches()
    createPod(kubernetes, 'unseen')
    await until('seen after all', () => podNames().includes('unseen'))
    expect(part('pods').counters.silences).to.equal(1)
    expect(logged.map(line => line['problem'])).to.include('the watch is silent about what the server has')
  })

  it('does not doubt a watch that is silent because nothing changes', async () => {
    const { part } = await start({ reflector: { heartbeatEveryMs: 20, heartbeatLimitMs: 300 } })
    const seen = part('pods').counters.events
    await until('ten bookmarks', () => part('pods').counters.events > seen + 10)
    expect(part('pods').counters).to.include({ lists: 1, silences: 0, failures: 0 })
  })

  it('notices that the server went back in time (a watch from the future is silent for ever)', async () => {
    const { kubernetes, part } = await start({
      server: { bookmarkEveryMs: 60_000, waitMs: 50 },
      reflector: { heartbeatEveryMs: 50 },
      before: many(5)
    })
    kubernetes.faults.stepBack(8)
    createPod(kubernetes, 'after-restore')
    await until('seen after all', () => podNames().includes('after-restore'))
    expect(part('pods').counters.silences).to.be.greaterThan(0)
    await tells('later')
  })

  it('lists from scratch if a restart took the server back in time (504 too large)', async () => {
    const { kubernetes } = await start({ server: { waitMs: 50 }, before: many(5) })
    kubernetes.faults.stepBack(8)
    kubernetes.faults.answer(410, { watch: true, path: '/api/v1/pods', times: 1 })
    kubernetes.faults.dropConnections()
    await until('listed anew', () => lists() === 2)
    await tells('later')
  })

  it('reports no deletion of a pod that was read directly during a list', async () => {
    const { kubernetes, cluster } = await start()
    const undo = kubernetes.faults.muteWatches({ newOnes: true })
    const uid = createPod(kubernetes, 'fresh') as PodUid
    await cluster.fetchPod('shop', 'fresh')
    expect(cluster.pods.get(uid)?.name).to.equal('fresh')
    undo()
    kubernetes.faults.endWatches()
    await live(rig)
    await tells('later')
    expect(cluster.pods.gone(uid)).to.equal(undefined)
  })

  it('asks for its credentials again after a 401', async () => {
    let token: string | undefined
    let onDisk: string | undefined
    const { kubernetes, part } = await start({
      credentials: k => ({
        ...credentialsOf(k, () => token ?? k.token),
        refused: () => (token = onDisk)
      })
    })
    const rotated = kubernetes.faults.rotateToken()
    kubernetes.faults.endWatches()
    await until('refused', () => part('pods').problem.includes('401 Unauthorized'))
    onDisk = rotated
    await tells('later')
  })

  it('waits as long as a 429 asks', async () => {
    const { kubernetes, part } = await start()
    kubernetes.faults.answer(429, { watch: true, path: '/api/v1/pods', times: 1, retryAfterSeconds: 1 })
    const began = performance.now()
    kubernetes.faults.endWatches()
    await until('refused', () => part('pods').state === 'stale')
    await until('live', () => part('pods').state === 'live')
    expect(performance.now() - began).to.be.greaterThan(990)
    expect(lists()).to.equal(1)
  })

  it('keeps trying after 500 and 403, and reports why it is not live', async () => {
    const { kubernetes, part } = await start()
    const undo = kubernetes.faults.deny({ verb: '*', resource: 'pods' })
    kubernetes.faults.endWatches()
    await until('the reason', () => part('pods').problem.includes('403 Forbidden'))
    undo()
    kubernetes.faults.answer(500, { times: 2, path: '/api/v1/pods' })
    await tells('later')
  })

  it('loses nothing over a corrupt line', async () => {
    const { kubernetes, part } = await start()
    kubernetes.faults.corruptEvents(1)
    await tells('first')
    await tells('second')
    expect(part('pods').counters.failures).to.be.greaterThan(0)
    expect(lists()).to.equal(1)
  })

  it('reads events cut anywhere, inside a character too', async () => {
    const { kubernetes, cluster } = await start()
    kubernetes.faults.splitEvents()
    const annotations = { 'apisix-drain.io/note': 'größer ☂ 雨 🚰' }
    kubernetes.store.create('pods', {
      metadata: { name: 'u', namespace: 'shop', annotations },
      spec: { containers: [] }
    })
    await until('seen', () => cluster.pods.byName('shop', 'u') !== undefined)
    expect(cluster.pods.byName('shop', 'u')?.annotations).to.deep.equal(annotations)
  })

  it('lists again when a watch breaks repeatedly without an event', async () => {
    const { kubernetes } = await start({ server: { bookmarkEveryMs: 60_000 } })
    kubernetes.faults.answer(500, { watch: true, path: '/api/v1/pods', times: 3 })
    kubernetes.faults.endWatches()
    await until('listed anew', () => lists() === 2)
    await tells('later')
  })

  it('falls back to paged lists if the initial events never end', async () => {
    rig = await startRig({
      gatewaySelector: { static: [] },
      reflector: { initialIdleMs: 50 },
      before: k => {
        many(2)(k)
        const undo = k.faults.muteWatches({ newOnes: true })
        setTimeout(undo, 200)
      }
    })
    await live(rig)
    expect(podNames()).to.have.length(2)
    expect(rig.logged.map(line => line['msg'])).to.include('no WatchList here: using paged lists')
  })

  it('tells the revision that it has reached', async () => {
    await start()
    await live(rig)
    const before = rig.cluster.podsAsOf() ?? 0
    expect(before).to.be.above(0)
    many(1)(rig.kubernetes)
    await until('it sees the pod', () => podNames().length === 1)
    expect(rig.cluster.podsAsOf()).to.be.above(before)
  })

  it('shows a sign of life on request, and only while the server answers', async () => {
    await start()
    expect(rig.cluster.podsAssuredAt()).to.equal(-Infinity)
    const first = rig.clock.now()
    rig.cluster.assurePods()
    await until('a sign', () => rig.cluster.podsAssuredAt() >= first)
    const undo = rig.kubernetes.faults.answer(500, { path: '/api/v1/pods', watch: false })
    const second = rig.clock.now()
    rig.cluster.assurePods()
    // An event of the watch does not prove that the watch is up to date, because it may be old.
    await tells('later')
    expect(rig.cluster.podsAssuredAt()).to.be.below(second)
    undo()
    await until('a sign again', () => rig.cluster.podsAssuredAt() >= second)
  })
})
