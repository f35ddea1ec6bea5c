import { expect } from 'chai'
import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { Backend } from './backend.ts'
import { emptied, stopAll } from './clean-up.ts'
import { atOnce, backends, many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway, SHAPES, TYPES, type Upstream } from './gateway.ts'

describe('The barrier holds with every balancer of APISIX:', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend
  let dead: Backend
  const requests = async (n: number) => await atOnce(`${gateway.url}/u?ms=5`, n)

  before(async () => {
    gateway = await Gateway.start({ workers: 2 })
    a = await Backend.start()
    b = await Backend.start()
    dead = await Backend.start()
    await dead.kill()
  })
  after(() => stopAll(gateway, a, b))
  afterEach(() => emptied(gateway, a, b, dead))

  for (const type of TYPES)
    for (const [shape, config] of Object.entries(SHAPES))
      it(`${type}, ${shape}: first picks, retries, and after the entry is lifted`, async () => {
        const upstream: Upstream = { type, key: 'arg_k' }
        const order = [dead.node, a.node, b.node]
        await gateway.configured(config({ ...upstream, retries: 2 }, order))
        await gateway.barrier.put(a.sealed)
        const before = a.requests.length
        expect(backends(await requests(24))).to.deep.equal([b.name])
        expect(a.requests.length).to.equal(before)

        await gateway.configured(config(upstream, [a.node, b.node]))
        expect(backends(await requests(12))).to.deep.equal([b.name])
        await gateway.barrier.put(b.entry())
        expect(backends(await requests(12))).to.deep.equal([b.name])
        await gateway.barrier.remove(a.uid)
        expect(backends(await requests(12))).to.deep.equal([a.name])
        expect(a.requests.length).to.equal(before + 12)
        await gateway.barrier.remove(b.uid)
        const wanted = shape === 'priorities' ? [a.name] : [a.name, b.name]
        expect(backends(await requests(40))).to.deep.equal(wanted)
      })

  for (const type of TYPES)
    it(`${type}: nodes of weight 0 take over from the last node that has a weight`, async () => {
      const standbys = [b.node, dead.node].map(node => ({ ...node, weight: 0 }))
      const nodes = [a.node, ...standbys]
      await gateway.configured({ u: { type, key: 'arg_k', nodes, retries: 2 } })
      await gateway.barrier.put(a.sealed)
      expect(backends(await requests(24))).to.deep.equal([b.name])
    })

  for (const hash_on of ['cookie', 'header'] as const)
    it(`chash by ${hash_on}: only the sessions of the ending pod move, and come back if its end is undone`, async () => {
      const c = await Backend.start()
      const reached = async () => {
        const replies = Array.from({ length: 60 }, async (_, i) => {
          const headers = hash_on === 'cookie' ? { cookie: `sid=s-${i}` } : { sid: `s-${i}` }
          return (await send(`${gateway.url}/u`, { headers })).backend
        })
        return await Promise.all(replies)
      }
      try {
        const u = { type: 'chash', hash_on, key: 'sid', nodes: [a.node, b.node, c.node] } as const
        await gateway.configured({ u })
        const before = await reached()
        expect(new Set(before).size).to.equal(3)
        for (const entry of [a.entry(), a.sealed]) {
          await gateway.barrier.put(entry)
          const during = await reached()
          expect(during).not.to.include(a.name)
          before.forEach((pod, i) => pod === a.name || expect(during[i]).to.equal(pod))
        }
        await gateway.barrier.remove(a.uid)
        expect(await reached()).to.deep.equal(before)
      } finally {
        await c.kill()
      }
    })

  it('a name with several records: a request whose record is sealed gets another one', async () => {
    const twin = await Backend.start(a.node.port)
    try {
      const [domain, port] = ['two.test', a.node.port]
      const place = { id: '1', upstream: { nodes: [{ host: domain, port, weight: 1 }] } }
      const names = { [domain]: [a.node.host, twin.node.host] }
      // APISIX uses one address of the name for each request. Here the address of `a` is always used
      const u: Upstream = { nodes: [{ ...a.node, domain }], pass_host: 'node' }
      await gateway.configured({ u, objects: { kinds: { routes: [place] }, names } })
      gateway.barrier.words = true
      await eventually('the workers know the records', async () => {
        const { word } = (await gateway.barrier.put(a.entry())).entries[0]!
        return word.said === word.asked && word.others.length > 0
      })
      await gateway.barrier.put(a.sealed)
      const replies = await many(`${gateway.url}/u`, 20)
      expect(backends(replies)).to.deep.equal([twin.name])
      expect(replies[0]?.host).to.equal(`${domain}:${port}`)
      await gateway.barrier.put(twin.sealed)
      expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    } finally {
      gateway.barrier.words = false
      await gateway.barrier.remove(twin.uid)
      await gateway.configured({ objects: { kinds: { routes: [] } } })
      await twin.kill()
    }
  })

  it('pass_host node: a retry sends the host of its own node', async () => {
    const nodes = [dead.node, a.node, b.node].map((node, i) => ({ ...node, domain: `pod-${i}.test` }))
    await gateway.configured({ u: { nodes, pass_host: 'node' } })
    await gateway.barrier.put(a.sealed)
    for (const reply of await many(`${gateway.url}/u`, 10)) {
      expect(reply).to.include({ backend: b.name, host: `pod-2.test:${b.node.port}` })
    }
  })

  it('gRPC: first picks and retries', async () => {
    await gateway.configured({ u: { scheme: 'grpc', nodes: [dead.grpc, a.grpc, b.grpc] } })
    await gateway.barrier.put(a.entry({ port: a.grpc.port, state: 'sealed' }))
    const session = connect(gateway.h2)
    try {
      const call = async () => {
        const type = { 'content-type': 'application/grpc', te: 'trailers' }
        const stream = session.request({ ':method': 'POST', ':path': '/u', ...type })
        const closed = once(stream.resume(), 'close')
        stream.end('\0\0\0\0\0')
        const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
        await closed
        return String(headers['x-backend'] ?? headers[':status'])
      }
      const heard = new Set<string>()
      for (let i = 0; i < 20; i += 1) heard.add(await call())
      expect([...heard]).to.deep.equal([b.name])
      await gateway.barrier.remove(a.uid)
      for (let i = 0; i < 20; i += 1) heard.add(await call())
      expect([...heard]).to.have.members([a.name, b.name])
    } finally {
      session.destroy()
    }
  })

  for (const shape of ['a traffic-split rule', 'service discovery'])
    it(`${shape}: one picker serves all requests under one deny-list`, async () => {
      await gateway.configured(SHAPES[shape]?.({}, [dead.node, a.node, b.node]) ?? {})
      await gateway.barrier.put(a.sealed)
      await requests(20)
      const before = await gateway.pickersMade()
      await requests(40)
      // a worker that has had no request before builds one picker for all nodes, and one for the remaining nodes
      expect((await gateway.pickersMade()) - before).to.be.below(3)
    })
})
