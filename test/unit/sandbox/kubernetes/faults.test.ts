import { once } from 'node:events'
import { connect } from 'node:http2'
import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { text, connectTo, podDraft, until, type Client } from './client.ts'
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
  it('answers the next n with an error, with Retry-After', async () => {
    kubernetes.faults.answer(429, { times: 2, retryAfterSeconds: 7, path: '/pods' })
    const statuses = []
    for (let i = 0; i < 3; i += 1) statuses.push(await client.ask('GET', PODS))
    expect(statuses.map(({ status }) => status)).to.deep.equal([429, 429, 200])
    expect(statuses[0]!.headers['retry-after']).to.equal('7')
    expect(statuses[0]!.body.reason).to.equal('TooManyRequests')
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
  it('accepts a request and never answers', async () => {
    kubernetes.faults.hang({ times: 1 })
    expect(await outcome(client.ask('GET', PODS), 60)).to.equal('silent')
    expect((await client.ask('GET', PODS)).status).to.equal(200)
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
  it('goes half-open: no ping is answered, and nothing is closed; after the thaw everything arrives', async () => {
    const watch = await client.watch(WATCH)
    await watch.count(1)
    const undo = kubernetes.faults.freezeConnections()
    label('late')
    expect(await pinged(client, 100)).to.equal(false)
    expect(client.session.destroyed).to.equal(false)
    expect(watch.events).to.have.length(1)
    const fresh = connectTo(kubernetes)
    expect((await fresh.ask('GET', PODS)).status).to.equal(200)
    fresh.close()
    undo()
    await watch.count(2)
    expect(await pinged(client, 500)).to.equal(true)
  })
  it('freezes new connections too, on request', async () => {
    const undo = kubernetes.faults.freezeConnections({ newOnes: true })
    const fresh = connectTo(kubernetes)
    const asked = fresh.ask('GET', PODS)
    expect(await outcome(asked, 80)).to.equal('silent')
    undo()
    expect((await asked).status).to.equal(200)
    fresh.close()
  })
  it('drops every connection with a RST', async () => {
    await client.ask('GET', PODS)
    const failed = once(client.session, 'error') as Promise<[NodeJS.ErrnoException]>
    kubernetes.faults.dropConnections()
    const [err] = await failed
    expect(err.code).to.equal('ECONNRESET')
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
  it('ends all watches cleanly', async () => {
    const watch = await client.watch(WATCH)
    kubernetes.faults.endWatches()
    await watch.ended
    expect(watch.stream.rstCode).to.equal(0)
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
  it('steps back as after an etcd restore: an earlier watch is silent', async () => {
    const before = kubernetes.store.version()
    kubernetes.faults.stepBack(10)
    const watch = await client.watch(`${WATCH}&resourceVersion=${before}`)
    const current = await client.watch(WATCH)
    label('x')
    await current.count(2)
    expect(watch.status).to.equal(200)
    expect(watch.events).to.deep.equal([])
  })
  it('shows stale lists until undone', async () => {
    const undo = kubernetes.faults.staleLists()
    kubernetes.store.create('pods', podDraft('b'))
    expect((await client.ask('GET', PODS)).body.items).to.have.length(1)
    undo()
    expect((await client.ask('GET', PODS)).body.items).to.have.length(2)
  })
  it('breaks the next event line only', async () => {
    const watch = await client.watch(`${WATCH}&resourceVersion=${kubernetes.store.version()}`)
    kubernetes.faults.corruptEvents()
    label('broken')
    label('whole')
    await watch.count(1)
    expect(watch.broken).to.have.length(1)
    expect(watch.events[0]!.object.metadata!.labels).to.deep.equal({ value: 'whole' })
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
  it('ends the watch of a slow consumer', async () => {
    kubernetes.faults.closeSlowWatches(200_000)
    const watch = await client.watch(WATCH)
    watch.stream.pause()
    for (let i = 0; i < 400 && kubernetes.watchCount() > 0; i += 1) label('x'.repeat(20_000) + i)
    await until(() => kubernetes.watchCount() === 0, 'the watch is ended')
  })
})
