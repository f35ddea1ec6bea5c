import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../sandbox/kubernetes/server.ts'
import { until } from '../../build/apisix.ts'

/** Faults that no other test would miss if they did nothing. */
describe('sandbox/kubernetes', () => {
  let kubernetes: Kubernetes
  beforeEach(async () => void (kubernetes = await startKubernetes({ tls: false })))
  afterEach(() => kubernetes.close())
  const get = (query: string) => {
    const headers = { authorization: `Bearer ${kubernetes.token}` }
    return fetch(`${kubernetes.url}/api/v1/namespaces/default/configmaps?${query}`, { headers })
  }
  const create = (name: string) =>
    kubernetes.store.create('configmaps', { metadata: { name, namespace: 'default' } })
  const listed = async () => ((await (await get('')).json()) as { items: unknown[] }).items.length

  it('shows stale lists until undone', async () => {
    const undo = kubernetes.faults.staleLists()
    create('a')
    expect(await listed()).to.equal(0)
    undo()
    expect(await listed()).to.equal(1)
  })

  it('cuts events anywhere and loses nothing; a watch that was mute ends', async () => {
    kubernetes.faults.splitEvents()
    const watch = await get(`watch=true&resourceVersion=${kubernetes.store.version()}`)
    const chunks: string[] = []
    let ended = false
    const reading = (async () => {
      for await (const chunk of watch.body!) chunks.push(Buffer.from(chunk).toString('latin1'))
      ended = true
    })()
    for (let i = 0; i < 20; i += 1) create(`c${i}`)
    await until('all events came', () => chunks.join('').split('\n').length === 21)
    expect(chunks.length).to.be.above(20)
    const names = chunks.join('').matchAll(/"name":"(c\d+)"/g)
    expect([...names].map(([, name]) => name)).to.deep.equal(Array.from({ length: 20 }, (_, i) => `c${i}`))
    const undo = kubernetes.faults.muteWatches()
    create('lost')
    expect(ended).to.equal(false)
    undo()
    await reading
    expect(chunks.join('')).to.not.contain('lost')
  })
})
