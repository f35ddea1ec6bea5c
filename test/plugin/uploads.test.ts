import { expect } from 'chai'
import { Backend } from './backend.ts'
import { stopAll } from './clean-up.ts'
import { backends, uploads } from './client.ts'
import { type Config, Gateway, type Upstream } from './gateway.ts'

describe('A request whose body was still being read when the drain began', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend
  let c: Backend
  const barrier = () => gateway.barrier
  const counts = async () => (await barrier().state()).counts

  before(async () => {
    gateway = await Gateway.start()
    a = await Backend.start()
    b = await Backend.start()
    c = await Backend.start()
  })
  after(() => stopAll(gateway, a, b, c))
  afterEach(async () => {
    await barrier().remove(a.uid, 'other')
    expect((await counts()).errors, gateway.errors()).to.equal(0)
  })

  const paths = (n: number) => Array.from({ length: n }, (_, i) => `/u?k=${i}`)

  it('delays no ack, and goes to another node', async () => {
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    // with this entry for another port of the pod, picks in the access phase must check the port
    await barrier().put(a.entry({ uid: 'other', port: 1 }))
    await gateway.lookedAgain()
    const before = await counts()
    const finish = await uploads(gateway, ...paths(8))
    const seen = a.requests.length
    const told = await barrier().put(a.sealed)
    expect(told.entries[0]?.inflight).to.deep.equal({ requests: 0, long: 0 })
    expect(backends(await finish())).to.deep.equal([b.name])
    expect(a.requests.length).to.equal(seen)
    expect((await counts()).moved - before.moved).to.be.within(1, 7)
  })

  it('gets the host of its new node if pass_host is node', async () => {
    await gateway.configured({ u: { nodes: [a.node, b.node], pass_host: 'node' } })
    const finish = await uploads(gateway, ...paths(6))
    await barrier().put(a.sealed)
    for (const reply of await finish()) {
      expect(reply).to.include({ backend: b.name, host: `${b.node.host}:${b.node.port}` })
      expect(reply.body).to.equal(`${b.name} 4000\n`)
    }
  })

  const homes: Record<string, (pod: Backend, ...more: Backend[]) => Config> = {
    'an upstream': (...pods) => ({ u: { nodes: pods.map(p => p.node) } }),
    'a service': (...pods) => ({ u: { home: 'services', nodes: pods.map(p => p.node) } }),
    'a route': (...pods) => ({ u: { home: 'routes', nodes: pods.map(p => p.node) } }),
    'service discovery': (...pods) => ({
      u: { service_name: 's', discovery_type: 'stand_in' },
      discovery: { s: pods.map(p => p.node) }
    })
  }
  for (const [home, config] of Object.entries(homes)) {
    it(`goes to a node that ${home} has listed since, when its own are all sealed`, async () => {
      await gateway.configured(config(a))
      const before = await counts()
      const finish = await uploads(gateway, ...paths(4))
      await gateway.configured(config(b, c))
      await barrier().put(a.sealed)
      const seen = a.requests.length
      expect(backends(await finish())).to.not.include.members([a.name, 'status 500', 'status 503'])
      expect(a.requests.length).to.equal(seen)
      const after = await counts()
      expect([after.moved - before.moved, after.refused - before.refused]).to.deep.equal([4, 0])
    })
  }

  it('retries among the nodes listed since', async () => {
    const dead = await Backend.start()
    await dead.kill()
    const upstream: Upstream = { type: 'chash', key: 'arg_k' }
    await gateway.configured({ u: { ...upstream, nodes: [a.node] } })
    const finish = await uploads(gateway, ...paths(8))
    await gateway.configured({ u: { ...upstream, nodes: [dead.node, b.node] } })
    await barrier().put(a.sealed)
    expect(backends(await finish())).to.deep.equal([b.name])
  })

  const nowhere: Record<string, [Config, (pod: Backend) => Config]> = {
    'nothing else is listed': [{ u: {} }, pod => ({ u: { nodes: [pod.node] } })],
    'the upstream is gone': [{ u: {} }, () => ({})],
    'what is listed since wants another host header': [
      { u: {} },
      () => ({ u: { nodes: [b.node], pass_host: 'node' } })
    ],
    'it stands in a traffic-split rule': [
      { u: { split: true } },
      () => ({ u: { split: true, nodes: [b.node] } })
    ]
  }
  for (const [why, [first, then]] of Object.entries(nowhere)) {
    it(`is refused when its nodes are sealed and ${why}`, async () => {
      const upstream = 'u' in first ? first.u : {}
      await gateway.configured({ u: { ...upstream, nodes: [a.node] } })
      const before = await counts()
      const finish = await uploads(gateway, ...paths(2))
      await gateway.configured(then(a))
      await barrier().put(a.sealed)
      const seen = a.requests.length
      for (const reply of await finish()) expect(reply.status).to.equal(503)
      expect(a.requests.length).to.equal(seen)
      expect((await counts()).refused - before.refused).to.equal(2)
    })
  }
})
