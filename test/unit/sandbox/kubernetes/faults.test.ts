import { once } from 'node:events'
import { connect } from 'node:http2'
import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { text, connectTo, podDraft, type Client } from './client.ts'
import { ranMs } from '../../../build/apisix.ts'

const PODS = '/api/v1/namespaces/default/pods'
const WATCH = `${PODS}?watch=true`

/** True when a ping is answered within `ms`. */
const pinged = (client: Client, ms: number) =>
  new Promise<boolean>(resolve => {
    const timer = setTimeout(() => resolve(false), ms)
    client.session.ping(err => {
      clearTimeout(timer)
      resolve(err === null)
    })
  })

/** Unlike `once`, it does not reject on an earlier error. */
const closed = (client: Client) =>
  new Promise<void>(resolve => void client.session.once('close', () => resolve()))

/** Tries a new connection. Returns the code of its error, or `open`. */
const attempt = (kubernetes: Kubernetes) =>
  new Promise<string>(resolve => {
    const session = connect(kubernetes.url, { ca: kubernetes.ca! })
    session.on('connect', () => {
      resolve('open')
      session.destroy()
    })
    session.on('error', (err: NodeJS.ErrnoException) => resolve(`${err.code}`))
  })

const outcome = (asked: Promise<unknown>, ms: number) =>
  Promise.race([
    asked.then(
      () => 'answered',
      () => 'failed'
    ),
    new Promise<string>(resolve => setTimeout(() => resolve('silent'), ms))
  ])

describe('sandbox/kubernetes faults', () => {
  let kubernetes: Kubernetes
  let client: Client
  beforeEach(async () => {
    kubernetes = await startKubernetes()
    client = connectTo(kubernetes)
    kubernetes.store.create('pods', podDraft('a'))
  })
  afterEach(async () => {
    client.close()
    await kubernetes.close()
  })
  const label = (value: string) =>
    kubernetes.store.modify('pods', 'default', 'a', pod => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { value } }
    }))

  it('delays by path, until undone', async () => {
    const undo = kubernetes.faults.delay(800, { path: /\/pods$/ })
    const started = performance.now()
    let answered = false
    const slow = client.ask('GET', PODS).then(() => (answered = true))
    await client.ask('GET', '/api/v1/namespaces')
    expect(answered, 'another path is not delayed').to.equal(false)
    expect(ranMs(started)).to.be.lessThan(600)
    await slow
    expect(performance.now() - started).to.be.at.least(798)
    undo()
    const later = performance.now()
    await client.ask('GET', PODS)
    expect(ranMs(later)).to.be.lessThan(600)
  })
  it('fails until cleared: watches only, or everything but watches', async () => {
    kubernetes.faults.answer(503, { watch: true })
    expect((await client.ask('GET', WATCH)).status).to.equal(503)
    expect((await client.ask('GET', PODS)).status).to.equal(200)
    kubernetes.faults.clear()
    expect((await client.watch(WATCH)).status).to.equal(200)
  })
  it('rotates the token: the old one is 401', async () => {
    const token = kubernetes.faults.rotateToken()
    expect((await client.ask('GET', PODS)).status).to.equal(401)
    const again = connectTo(kubernetes, token)
    expect((await again.ask('GET', PODS)).status).to.equal(200)
    again.close()
  })
  it('resets the connection of a request', async () => {
    kubernetes.faults.reset({ times: 1 })
    const failed = closed(client)
    expect(await outcome(client.ask('GET', PODS), 1000)).to.equal('failed')
    await failed
    const again = connectTo(kubernetes)
    expect((await again.ask('GET', PODS)).status).to.equal(200)
    again.close()
  })
  it('mutes a watch while connection and pings live on', async () => {
    const watch = await client.watch(WATCH)
    await watch.count(1)
    const undo = kubernetes.faults.muteWatches()
    label('lost')
    const fresh = await client.watch(WATCH)
    await fresh.count(1)
    expect(await pinged(client, 500)).to.equal(true)
    expect(watch.events).to.have.length(1)
    undo()
    // A watch must end at a gap, and never continue after it.
    await watch.ended
    label('seen')
    await fresh.count(2)
    expect(watch.events).to.have.length(1)
  })
  it('mutes new watches too, on request', async () => {
    kubernetes.faults.muteWatches({ newOnes: true })
    const watch = await client.watch(WATCH)
    expect(await pinged(client, 500)).to.equal(true)
    expect(watch.events).to.deep.equal([])
  })
  it('sends GOAWAY and lets open streams continue', async () => {
    const watch = await client.watch(WATCH)
    await watch.count(1)
    const told = once(client.session, 'goaway')
    kubernetes.faults.goAway()
    await told
    label('x')
    await watch.count(2)
  })
  it('restarts on the same port, with 410 for every old version, although nothing changed', async () => {
    const { body } = await client.ask('GET', PODS)
    const old = text(body.metadata!.resourceVersion)
    const gone = closed(client)
    await kubernetes.faults.restart({ downMs: 20 })
    await gone
    const again = connectTo(kubernetes)
    const watch = await again.watch(`${WATCH}&resourceVersion=${old}`)
    await watch.ended
    expect(watch.events.map(({ object }) => object.code)).to.deep.equal([410])
    const relisted = await again.ask('GET', PODS)
    expect(Number(relisted.body.metadata!.resourceVersion)).to.be.greaterThan(Number(old))
    const next = await again.watch(
      `${WATCH}&resourceVersion=${text(relisted.body.metadata!.resourceVersion)}`
    )
    label('after')
    await next.count(1)
    again.close()
  })
  it('refuses connections while it is down, after a GOAWAY', async () => {
    await client.ask('GET', PODS)
    const told = once(client.session, 'goaway')
    const restarted = kubernetes.faults.restart({ downMs: 60, goAway: true })
    await told
    const attempts = new Set<string>()
    for (let i = 0; i < 50 && !attempts.has('ECONNREFUSED'); i += 1) attempts.add(await attempt(kubernetes))
    expect(attempts).to.include('ECONNREFUSED')
    await restarted
    const again = connectTo(kubernetes)
    expect((await again.ask('GET', PODS)).status).to.equal(200)
    again.close()
  })
  it('shows stale lists until undone', async () => {
    const undo = kubernetes.faults.staleLists()
    kubernetes.store.create('pods', podDraft('b'))
    expect((await client.ask('GET', PODS)).body.items).to.have.length(1)
    undo()
    expect((await client.ask('GET', PODS)).body.items).to.have.length(2)
  })
  it('cuts events into pieces anywhere, losing nothing and keeping their order', async () => {
    kubernetes.faults.splitEvents()
    const watch = await client.watch(`${WATCH}&resourceVersion=${kubernetes.store.version()}`)
    for (let i = 0; i < 20; i += 1) label(`ü${i}`)
    const events = await watch.count(20)
    expect(events.map(({ object }) => text(object.metadata!.labels!.value))).to.deep.equal(
      Array.from({ length: 20 }, (_, i) => `ü${i}`)
    )
    expect(watch.broken).to.deep.equal([])
    expect(watch.chunks()).to.be.greaterThan(20)
  })
})
