import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { text, connectTo, podDraft, until, type Client, type Event } from './client.ts'
import { ranMs } from '../../../build/apisix.ts'

const PODS = '/api/v1/namespaces/default/pods?watch=true'
const INITIAL = '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

const said = (events: readonly Event[]) =>
  events.map(
    ({ type, object }) =>
      `${type} ${text(object.metadata?.name ?? object.metadata?.resourceVersion ?? object.code)}`
  )

describe('sandbox/kubernetes watch', () => {
  let kubernetes: Kubernetes
  let client: Client
  beforeEach(async () => {
    kubernetes = await startKubernetes({ bookmarkEveryMs: 15, waitMs: 30 })
    client = connectTo(kubernetes)
  })
  afterEach(async () => {
    client.close()
    await kubernetes.close()
  })
  const create = (name: string, labels: Record<string, string> = {}) =>
    kubernetes.store.create('pods', podDraft(name, labels))
  const label = (name: string, labels: Record<string, string>) =>
    kubernetes.store.modify('pods', 'default', name, pod => ({
      ...pod,
      metadata: { ...pod.metadata, labels }
    }))

  for (const from of ['', '&resourceVersion=', '&resourceVersion=0'])
    it(`begins with the existing objects ("${from}")`, async () => {
      create('a')
      const watch = await client.watch(PODS + from)
      await watch.count(1)
      create('b')
      expect(said(await watch.count(2))).to.deep.equal(['ADDED a', 'ADDED b'])
      expect(watch.events[0]!.object).to.deep.include({ kind: 'Pod', apiVersion: 'v1' })
    })
  it('continues after a version, missing nothing', async () => {
    const { metadata } = create('a')
    label('a', { x: '1' })
    create('b')
    const watch = await client.watch(`${PODS}&resourceVersion=${metadata.resourceVersion}`)
    kubernetes.store.delete('pods', 'default', 'a', { gracePeriodSeconds: 0 })
    const events = await watch.count(4)
    expect(said(events)).to.deep.equal(['MODIFIED a', 'ADDED b', 'MODIFIED a', 'DELETED a'])
    expect(events[3]!.object.metadata!.resourceVersion).to.equal(`${kubernetes.store.version()}`)
  })
  it('sends ADDED and DELETED when an object enters and leaves the selector', async () => {
    create('a', { app: 'x' })
    const watch = await client.watch(`${PODS}&labelSelector=app%3Dweb`)
    label('a', { app: 'web' })
    label('a', { app: 'web', more: '1' })
    label('a', { app: 'x' })
    label('a', { app: 'x', more: '2' })
    label('a', { app: 'web' })
    kubernetes.store.delete('pods', 'default', 'a', { gracePeriodSeconds: 0 })
    const events = await watch.count(6)
    expect(said(events)).to.deep.equal([
      'ADDED a',
      'MODIFIED a',
      'DELETED a',
      'ADDED a',
      'MODIFIED a',
      'DELETED a'
    ])
    const [, seen, left] = events
    expect(left!.object.metadata!.labels).to.deep.equal({ app: 'web', more: '1' })
    expect(Number(left!.object.metadata!.resourceVersion)).to.be.greaterThan(
      Number(seen!.object.metadata!.resourceVersion)
    )
  })
  it('sends them for field selectors too', async () => {
    const { metadata } = kubernetes.store.create('pods', { ...podDraft('a'), spec: { containers: [] } })
    const query = `&fieldSelector=spec.nodeName%3Dhost-1&resourceVersion=${metadata.resourceVersion}`
    const watch = await client.watch(PODS + query)
    kubernetes.store.modify('pods', 'default', 'a', pod => ({
      ...pod,
      spec: { ...pod.spec, nodeName: 'host-1' }
    }))
    expect(said(await watch.count(1))).to.deep.equal(['ADDED a'])
  })
  it('watches one object by its name in the path', async () => {
    create('a')
    create('b')
    const watch = await client.watch('/api/v1/namespaces/default/pods/b?watch=1')
    expect(said(await watch.count(1))).to.deep.equal(['ADDED b'])
  })
  it('sends 410 as an ERROR event in a 200 stream that ends cleanly', async () => {
    const { metadata } = create('a')
    kubernetes.faults.expireHistory()
    const watch = await client.watch(`${PODS}&resourceVersion=${metadata.resourceVersion}`)
    expect(watch.status).to.equal(200)
    await watch.ended
    expect(watch.stream.rstCode).to.equal(0)
    expect(watch.events).to.have.length(1)
    expect(watch.events[0]!.type).to.equal('ERROR')
    expect(watch.events[0]!.object).to.deep.include({ kind: 'Status', code: 410, reason: 'Expired' })
    expect(watch.events[0]!.object.message).to.match(/^too old resource version: \d+ \(\d+\)$/)
  })
  it('is 200 and silent from a future version until the store gets there', async () => {
    const future = kubernetes.store.version() + 2
    const watch = await client.watch(`${PODS}&resourceVersion=${future}&allowWatchBookmarks=true`)
    const other = await client.watch(PODS)
    create('a')
    create('b')
    create('c')
    await other.count(3)
    expect(said((await watch.count(1)).slice(0, 1))).to.deep.equal(['ADDED c'])
  })
  it('sends bookmarks only on request', async () => {
    const without = await client.watch(`${PODS}&resourceVersion=${kubernetes.store.version()}`)
    const watch = await client.watch(
      `${PODS}&resourceVersion=${kubernetes.store.version()}&allowWatchBookmarks=true`
    )
    kubernetes.store.create('configmaps', { metadata: { name: 'c', namespace: 'default' } })
    const now = `${kubernetes.store.version()}`
    await until(
      () => watch.events.some(({ object }) => object.metadata!.resourceVersion === (now as never)),
      'a bookmark'
    )
    expect(watch.events[0]!.object).to.deep.include({ kind: 'Pod', apiVersion: 'v1' })
    expect(without.events).to.deep.equal([])
  })
  it('ends cleanly at timeoutSeconds', async () => {
    const started = performance.now()
    const watch = await client.watch(`${PODS}&timeoutSeconds=1`)
    await watch.ended
    expect(watch.stream.rstCode).to.equal(0)
    expect(performance.now() - started).to.be.at.least(950)
    expect(ranMs(started)).to.be.below(2500)
    expect(kubernetes.watchCount()).to.equal(0)
  })
  it('forgets a watch whose client disconnected', async () => {
    const watch = await client.watch(PODS)
    expect(kubernetes.watchCount()).to.equal(1)
    watch.stream.close()
    await until(() => kubernetes.watchCount() === 0, 'the watch is gone')
  })
  it('streams the list (WatchList) and marks its end', async () => {
    create('a')
    create('b')
    const watch = await client.watch(PODS + INITIAL)
    const events = await watch.count(3)
    expect(said(events.slice(0, 2))).to.deep.equal(['ADDED a', 'ADDED b'])
    expect(events[2]!.type).to.equal('BOOKMARK')
    expect(events[2]!.object.metadata!.annotations).to.deep.equal({ 'k8s.io/initial-events-end': 'true' })
    expect(events[2]!.object.metadata!.resourceVersion).to.equal(`${kubernetes.store.version()}`)
    create('c')
    await until(() => said(watch.events).includes('ADDED c'), 'later events')
  })
  it('marks nothing without bookmarks, and skips the list with sendInitialEvents=false', async () => {
    create('a')
    const initial = await client.watch(PODS + INITIAL.replace('&allowWatchBookmarks=true', ''))
    const none = await client.watch(
      PODS + INITIAL.replace('Events=true', 'Events=false').replace('&allowWatchBookmarks=true', '')
    )
    create('b')
    expect(said(await initial.count(2))).to.deep.equal(['ADDED a', 'ADDED b'])
    expect(said(await none.count(1))).to.deep.equal(['ADDED b'])
  })
  it('refuses a WatchList without its match, and one from the future', async () => {
    expect((await client.ask('GET', `${PODS}&sendInitialEvents=true`)).status).to.equal(422)
    expect((await client.ask('GET', `${PODS}${INITIAL}&resourceVersion=99999`)).status).to.equal(504)
  })
  it('refuses WatchList with 422 if it plays an old version', async () => {
    const old = await startKubernetes({ old: true })
    const visitor = connectTo(old)
    const refused = await visitor.ask('GET', PODS + INITIAL)
    expect(refused.status).to.equal(422)
    expect(refused.body.reason).to.equal('Invalid')
    old.store.create('pods', podDraft('a'))
    const watch = await visitor.watch(`${PODS}&sendInitialEvents=true&allowWatchBookmarks=true`)
    expect(said(await watch.count(1))).to.deep.equal(['ADDED a'])
    visitor.close()
    await old.close()
  })
  it('sends metadata only on request', async () => {
    create('a')
    const watch = await client.watch(PODS, {
      accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
    })
    const [event] = await watch.count(1)
    expect(event!.object).to.have.keys('kind', 'apiVersion', 'metadata')
  })
})
