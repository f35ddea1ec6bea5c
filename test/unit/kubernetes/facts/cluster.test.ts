import { expect } from 'chai'
import type { ApiError } from '../../../../agent/kubernetes/transport/objects.ts'
import { createPod, live, startRig, until, type Rig } from '../reflect/rig.ts'

describe('watch: a cluster', () => {
  let rig: Rig
  afterEach(() => rig.close())

  const start = async (options: Parameters<typeof startRig>[0] = {}) => {
    rig = await startRig(options)
    await live(rig)
    return rig
  }

  it('asks for a round after a relevant change, and not after status noise', async () => {
    const { kubernetes, cluster, changes } = await start({ before: k => createPod(k, 'web-1') })
    const before = changes()
    for (const n of [1, 2, 3])
      kubernetes.store.patchStatus('pods', 'shop', 'web-1', { message: `noise ${n}` })
    const events = () => cluster.parts()[0]!.counters.events
    const seen = events()
    await until('the noise has come through', () => events() >= seen + 3)
    expect(changes()).to.equal(before)
    kubernetes.store.patchStatus('pods', 'shop', 'web-1', {
      conditions: [{ type: 'Ready', status: 'False' }]
    })
    await until('a change that matters', () => changes() > before)
  })

  it('finds gateways by their labels, including Terminating ones', async () => {
    const { kubernetes, cluster } = await start()
    const labels = { app: 'apisix' }
    createPod(kubernetes, 'apisix-1', { namespace: 'apisix', ip: '10.2.0.1', labels })
    createPod(kubernetes, 'other', { namespace: 'apisix', ip: '10.2.0.9' })
    kubernetes.store.create('pods', {
      metadata: { name: 'apisix-2', namespace: 'apisix', labels },
      spec: { containers: [] }
    })
    await until('the one with an address is listed', () => cluster.gateways()[0]?.ip === '10.2.0.1')
    expect(cluster.gateways()).to.have.lengthOf(1)
    kubernetes.store.delete('pods', 'apisix', 'apisix-1')
    await until('terminating', () => cluster.gateways()[0]?.terminating === true)
    kubernetes.store.delete('pods', 'apisix', 'apisix-1', { gracePeriodSeconds: 0 })
    // No event has reported the end of the gateway's pod.
    await until('gone', () => cluster.gateways()[0]?.vanishedAt !== undefined)
    cluster.gatewayEnded(cluster.gateways()[0]?.id ?? '')
    expect(cluster.gateways()).to.deep.equal([])
  })

  it('accepts gateways listed by hand, with no watch for them', async () => {
    const { cluster } = await start({ gatewaySelector: { static: [{ name: 'edge', host: '10.9.0.1' }] } })
    expect(cluster.gateways().map(g => g.ip)).to.deep.equal(['10.9.0.1'])
    expect(cluster.parts()[2]).to.include({ name: 'gateways', state: 'live', synced: true, objects: 1 })
    cluster.verifyWatch('gateways')
  })

  it('watches only the configured namespaces', async () => {
    const { cluster, kubernetes } = await start({
      namespaces: ['shop', 'bank'],
      before: k => {
        createPod(k, 'a', { namespace: 'shop' })
        createPod(k, 'b', { namespace: 'bank' })
        createPod(k, 'c', { namespace: 'other' })
      }
    })
    expect([...cluster.pods.values()].map(p => p.name)).to.have.members(['a', 'b'])
    expect(cluster.podsAsOf(), 'no revision holds for the pods of both').to.equal(undefined)
    const outside = await cluster.fetchPod('other', 'c')
    expect(outside?.name).to.equal('c')
    // The store must not have pod `c`, because no event would ever remove it again.
    expect(cluster.pods.byName('other', 'c')).to.equal(undefined)
    expect((await cluster.fetchPodsByIp('10.0.0.1')).map(p => p.name)).to.have.members(['a', 'b'])
    expect(kubernetes.watchCount()).to.equal(7)
  })

  it('reads from the API server, and the stores learn facts ahead of the watch', async () => {
    const { cluster, kubernetes, part } = await start({ before: k => createPod(k, 'web-1') })
    const unmute = kubernetes.faults.muteWatches()
    kubernetes.store.delete('pods', 'shop', 'web-1')
    expect(cluster.pods.ending()).to.deep.equal([])
    const fetched = await cluster.fetchPod('shop', 'web-1')
    expect(fetched?.deletionAt).to.be.a('number')
    expect(cluster.pods.ending().map(p => p.name)).to.deep.equal(['web-1'])
    // The watch does not report the change, so after a second the agent no longer trusts the watch.
    await until('listed anew', () => part('pods').counters.lists === 2, 2_500)
    expect(part('pods').counters.silences).to.equal(1)
    expect(cluster.pods.ending().map(p => p.name)).to.deep.equal(['web-1'])
    unmute()
  })

  it('a pod that does not exist is undefined; a refusal is an error with its reason', async () => {
    const { cluster, kubernetes } = await start()
    expect(await cluster.fetchPod('shop', 'nobody')).to.equal(undefined)
    kubernetes.faults.deny({ verb: 'get', resource: 'pods' })
    const error = await cluster.fetchPod('shop', 'nobody').catch((err: ApiError) => err)
    expect(error).to.include({ name: 'ApiError', status: 403, reason: 'Forbidden' })
  })

  it('waits as long as a 429 asks, and repeats a GET after a broken connection', async () => {
    const { cluster, kubernetes } = await start({ before: k => createPod(k, 'web-1') })
    kubernetes.faults.answer(429, { path: '/pods/web-1', times: 1, retryAfterSeconds: 1 })
    const began = performance.now()
    expect((await cluster.fetchPod('shop', 'web-1'))?.name).to.equal('web-1')
    expect(performance.now() - began).to.be.greaterThan(990)
    kubernetes.faults.reset({ path: '/pods/web-1', times: 1 })
    expect((await cluster.fetchPod('shop', 'web-1'))?.name).to.equal('web-1')
  })

  it('a call that is no GET is not repeated, and gives up with its signal', async () => {
    const { cluster, kubernetes } = await start()
    kubernetes.faults.answer(503, { method: 'POST', times: 1 })
    const body = { metadata: { name: 'e1' } }
    expect((await cluster.call('POST', '/api/v1/namespaces/shop/events', body)).status).to.equal(503)
    kubernetes.faults.hang({ method: 'POST' })
    const signal = AbortSignal.timeout(30)
    const error = await cluster.call('POST', '/api/v1/namespaces/shop/events', body, signal).catch(err => err)
    expect(error).to.include({ name: 'TimeoutError' })
  })

  it('verifying an active watch costs nothing; a silent one costs a list', async () => {
    const { cluster, kubernetes, part } = await start({ reflector: { verifyMs: 100 } })
    cluster.verifyWatch('pods')
    await until('bookmarks have come', () => part('pods').counters.events > 5)
    expect(part('pods').counters.lists).to.equal(1)
    const unmute = kubernetes.faults.muteWatches()
    await new Promise(resolve => setTimeout(resolve, 120))
    cluster.verifyWatch('pods')
    await until('listed anew', () => part('pods').counters.lists === 2)
    unmute()
  })

  it('stop leaves no timer, stream or socket', async () => {
    const { cluster, kubernetes, clock } = await start({ before: k => createPod(k, 'web-1') })
    // At the stop, the cluster still expects an event, and the timer for that event runs.
    kubernetes.faults.muteWatches()
    kubernetes.store.delete('pods', 'shop', 'web-1')
    await cluster.fetchPod('shop', 'web-1')
    await cluster.stop()
    expect(clock.pending).to.equal(0)
    await until('the server has no watch', () => kubernetes.watchCount() === 0)
    const error = await cluster.call('GET', '/version').catch((err: Error) => err.message)
    expect(error).to.equal('the connection to the API server was closed by us')
  })

  it('stop in the middle of connecting and listing leaves nothing either', async () => {
    rig = await startRig({ server: { old: true } })
    rig.kubernetes.faults.hang()
    await rig.cluster.stop()
    expect(rig.clock.pending).to.equal(0)
    expect(rig.kubernetes.watchCount()).to.equal(0)
  })
})
