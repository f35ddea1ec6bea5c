import { expect } from 'chai'
import { Backend } from './backend.ts'
import type { Word } from './barrier.ts'
import { emptied, stopAll } from './clean-up.ts'
import { atOnce, backends, many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway, SHAPES, TYPES, type Upstream } from './gateway.ts'

describe('Successors', () => {
  let gateway: Gateway
  let old: Backend
  let a: Backend
  let b: Backend
  let gone: Backend
  const barrier = () => gateway.barrier
  const counts = async () => (await barrier().state()).counts
  const at = ({ node }: Backend) => `${node.host}:${node.port}`
  /** Returns the entry of an ending pod, with the pods that take over from its port. */
  const followed = (pod: Backend, ...by: Backend[]) =>
    pod.entry({ successors: { [pod.node.port]: by.map(at) } })
  const sealed = (pod: Backend, ...by: Backend[]) => ({ ...followed(pod, ...by), state: 'sealed' as const })
  const used = async (...pods: Backend[]) => {
    const replies = await atOnce(`${gateway.url}/u?ms=10`, 60)
    expect(backends(replies)).to.have.members(pods.map(p => p.name))
    return replies
  }

  before(async () => {
    gateway = await Gateway.start()
    old = await Backend.start()
    a = await Backend.start()
    b = await Backend.start()
    gone = await Backend.start()
    await gone.kill()
  })
  after(() => stopAll(gateway, old, a, b))
  afterEach(() => emptied(gateway, old, a, b))

  it('they, then a draining node, then a standby follow a free node that fails (A9)', async () => {
    await gateway.configured({ u: { nodes: [old.node, gone.node, { ...b.node, priority: -1 }] } })
    await barrier().put(followed(old, a))
    await used(a)
    await barrier().put(a.entry())
    await used(old, a)
    await barrier().put(sealed(old))
    await used(b)
  })

  // after "-" a standby, after "?" a pod that the checks do not know yet
  for (const [listed, up, state, named, serves] of [
    ['old gone b-', 'old b', 'draining', 'a', 'a'],
    ['old gone b-', 'b', 'sealed', 'a', 'a'],
    ['old a b-', 'old b', 'draining', 'gone a', 'old'],
    ['old a b-', 'b', 'draining', 'gone a', 'b'],
    ['old a b-', 'b', 'sealed', 'gone a', 'b'],
    ['old a b-', '', 'sealed', 'gone a', 'a'],
    ['old a b-', 'b ?a', 'draining', 'a', 'a'],
    ['old a b', 'b', 'draining', 'gone a', 'b'],
    ['old a gone', 'old gone', 'draining', 'gone a', 'old'],
    ['old b', 'b', 'draining', 'a', 'b'],
    ['old b-', 'b', 'draining', 'a', 'b'],
    ['old b-', '', 'draining', 'a', 'a'],
    ['old b-', 'b', 'sealed', 'a', 'a'],
    ['old b-', 'old b', 'draining', 'a', 'a']
  ] as const)
    it(`[${listed}], checks leave in [${up}], ${state} old names [${named}]: ${serves} serves (A9)`, async () => {
      const pods: Record<string, Backend> = { old, a, b, gone }
      const nodes = (names: string) =>
        [...names.matchAll(/(\??)(\w+)(-?)/g)].map(([, mark, name, standby]) => {
          const { host, port } = pods[name!]!.node
          return { host: `${mark}${host}`, port, priority: standby ? -1 : 0 }
        })
      const hosts = nodes(up).map(({ host }) => host)
      const retries = listed.includes('gone') ? 1 : 0
      await gateway.configured({ u: { nodes: nodes(listed), up: hosts, retries } })
      await barrier().put({ ...followed(old, ...named.split(' ').map(name => pods[name]!)), state })
      await gateway.lookedAgain()
      await used(pods[serves]!)
    })

  for (const type of TYPES)
    for (const [shape, config] of Object.entries(SHAPES).filter(([name]) => name !== 'priorities'))
      it(`${type}, ${shape}: one gets the share of the pod, and all if no other node is left`, async () => {
        const upstream: Upstream = { type, ...(type === 'chash' && { key: 'arg_k' }) }
        const down = shape === 'active health checks' && { up: [b.node.host] }
        await gateway.configured(config(upstream, [b.node, old.node]))
        const whole = await used(b, old)
        await gateway.configured(config({ ...upstream, ...down }, [b.node, old.node]))
        const before = (await counts()).succeeded
        await barrier().put(followed(old, b, a, gone))
        const first = await used(a, b)
        await barrier().put(sealed(old, b, a, gone))
        const then = await used(a, b)
        const share = [...first, ...then].filter(({ backend }) => backend === a.name).length
        expect((await counts()).succeeded - before).to.equal(share)
        if (type !== 'ewma') expect(share).to.be.within(30, 90)
        if (type === 'chash')
          for (const [i, { backend }] of whole.entries())
            expect(then[i]!.backend).to.equal(backend === old.name ? a.name : backend)

        await gateway.configured(config(upstream, [old.node]))
        await barrier().put(sealed(old, a, b))
        await used(a, b)
        expect((await counts()).succeeded - before).to.equal(60 + share)
      })

  it('stand in for one node each: those with the fewest choose first, and one that fails stands in for none', async () => {
    await gateway.configured({ u: { nodes: [gone.node, old.node, b.node] } })
    await barrier().put(sealed(gone, a), sealed(old, a))
    const share = (await used(a, b)).filter(({ backend }) => backend === a.name).length
    expect(share, 'half of the requests, not two thirds').to.be.within(24, 36)
    const c = await Backend.start()
    await barrier().put(sealed(gone, a, c))
    await used(a, b, c)
    await c.kill()
    await used(a, b)
  })

  it('get a request that has failed only after the free nodes', async () => {
    await gateway.configured({ u: { nodes: [old.node, a.node, b.node], retries: 1 } })
    const successors = { [a.node.port]: [`${gone.node.host}:1`] }
    await barrier().put(sealed(old, gone), { ...a.sealed, successors })
    await used(b)
  })

  it('are reported with all entries, as they were put, to an agent that begins', async () => {
    const v6 = {
      uid: 'v6',
      ip: 'fd00::9',
      state: 'sealed' as const,
      successors: { 80: ['[fd00::a]:81'] }
    }
    await barrier().put(followed(old, a, b), v6, gone.entry())
    const { entries } = await barrier().state()
    const of = (uid: string) => entries.find(entry => entry.uid === uid)?.successors
    expect(of(followed(old).uid)).to.deep.equal({ [old.node.port]: [at(a), at(b)] })
    expect(of('v6')).to.deep.equal({ 80: ['[fd00::a]:81'] })
    expect(of(gone.entry().uid)).to.equal(undefined)
  })

  it('get nothing at a port that they are not named for', async () => {
    await gateway.configured({ u: { nodes: [old.node] } })
    await barrier().put({
      ...old.entry(),
      port: undefined,
      state: 'sealed',
      successors: { 1: [at(a)] }
    } as never)
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    await barrier().put({
      uid: old.uid,
      ip: old.node.host,
      state: 'sealed',
      successors: { [old.node.port]: [at(a)] }
    })
    await used(a)
  })

  it('are in flight at their own address, and sealed like any other node', async () => {
    await gateway.configured({ u: { nodes: [old.node] } })
    await barrier().put(sealed(old, a))
    const open = send(`${gateway.url}/u?ms=300`)
    await eventually('one is in flight', async () => {
      const { entries } = await barrier().put(a.entry())
      return entries[0]?.inflight.requests === 1
    })
    const told = await barrier().put(a.sealed)
    expect(told.entries[0]?.inflight.requests).to.equal(1)
    expect((await open).status).to.equal(200)
    const reached = a.requests.length
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    expect(a.requests.length).to.equal(reached)
  })

  it('that end are followed to their own successors, and never in a circle', async () => {
    await gateway.configured({ u: { nodes: [old.node] } })
    await barrier().put(sealed(old, a), followed(a, old, b))
    await used(b)
    await barrier().put(sealed(b, old))
    // a is ending but still serves, which is better than a refusal
    await used(a)
    expect((await barrier().inflight([a.uid])).entries[0]?.bypasses).to.equal(60)
    await barrier().put(sealed(a, b))
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
    await barrier().remove(a.uid)
    await used(a)
  })

  it('stay when a put does not name any, change with one that does, and go with an empty one', async () => {
    await gateway.configured({ u: { nodes: [old.node] } })
    await barrier().put(sealed(old, a))
    await barrier().put(old.sealed)
    await used(a)
    await barrier().put(sealed(old, b))
    await used(b)
    await barrier().put({ ...old.sealed, successors: {} })
    expect((await send(`${gateway.url}/u`)).status).to.equal(503)
  })

  it('that refuse connections are skipped for a while for another choice, then tried again', async () => {
    for (const [nodes, by, serves] of [
      [[old.node], [gone, a], a],
      [[old.node, b.node], [gone, a], a],
      [[old.node, { ...b.node, priority: -1 }], [gone], b]
    ] as const) {
      await gateway.configured({ u: { nodes, retries: 0 } })
      await barrier().put(sealed(old, ...by))
      const began = performance.now()
      const replies = await many(`${gateway.url}/u`, 60)
      expect(backends(replies)).to.include(serves.name)
      // each of the 3 workers tries the refusing pod once in two seconds
      const mayFail = 3 * (1 + Math.ceil((performance.now() - began) / 2000))
      expect(replies.filter(({ status }) => status !== 200).length).to.be.at.most(mayFail)
    }
    const isTried = async () => (await send(`${gateway.url}/u`)).status === 502
    await eventually('it is tried again', isTried)
    await gateway.configured({ u: { nodes: [old.node] } })
    await barrier().put(sealed(old, gone, a, b))
    await used(a, b)
    await barrier().put(sealed(old, gone))
    expect(await isTried()).to.equal(true)
  })

  it('get their own host if pass_host is node', async () => {
    await barrier().put(sealed(old, a))
    for (const nodes of [[old.node], [old.node, b.node]]) {
      await gateway.configured({ u: { type: 'chash', key: 'arg_k', nodes, pass_host: 'node' } })
      for (const { backend, host } of await used(a, ...(nodes[1] ? [b] : [])))
        expect(host).to.equal(at(backend === a.name ? a : b))
    }
  })

  it('get a request that was picked before the pod was sealed', async () => {
    await gateway.configured({ u: { nodes: [old.node] } })
    const hold = Promise.withResolvers<void>()
    const upload = send(`${gateway.url}/u`, { method: 'POST', body: 'x'.repeat(1000), slowly: hold.promise })
    await gateway.lookedAgain()
    await barrier().put(sealed(old, a))
    hold.resolve()
    expect((await upload).backend).to.equal(a.name)
  })

  describe('in the word of the workers', () => {
    const A = { host: '10.0.0.1', port: 80, weight: 1 }
    const nodes = (...list: object[]) => ({
      objects: {
        kinds: { upstreams: [{ id: 'u', nodes: list }], routes: [{ id: '1', upstream_id: 'u' }] }
      }
    })
    const pod = { uid: 'a', ip: A.host }
    const says = async (part: Partial<Word>, uid = 'a') =>
      await eventually(`the word of ${uid} is ${JSON.stringify(part)}`, async () => {
        const { word } = (await barrier().state()).entries.find(e => e.uid === uid)!
        expect(word, JSON.stringify(word)).to.deep.include({ said: 3, ...part })
        return true
      })

    beforeEach(async () => {
      barrier().words = true
      await gateway.configured(nodes(A))
    })
    after(() => {
      barrier().words = false
    })

    it('a successor that ends has a place there until the pod has none, for another free node may fail (A9)', async () => {
      await barrier().put({ ...pod, successors: { 80: ['10.0.0.7:80'] } }, { uid: 's', ip: '10.0.0.7' })
      await says({ places: 1 }, 's')
      await gateway.configured(nodes(A, { ...A, host: '10.0.0.9' }))
      await says({ places: 1, sole: [] }, 's')
      await gateway.configured(nodes(A))
      await says({ places: 1, sole: ['upstreams/u'] }, 's')
      await barrier().remove('a')
      await says({ places: 0, sole: [] }, 's')
    })

    it('a change of the successors changes the tag, so that no seal rests on the old ones', async () => {
      const tagOf = async () => (await barrier().state()).entries[0]!.word.tag
      await barrier().put({ ...pod, successors: { 80: ['10.0.0.7:80'] } })
      await says({ sole: [] })
      const tag = await tagOf()
      await barrier().put({ ...pod, successors: { 80: ['10.0.0.8:80'] } })
      const told = await barrier().put({ ...pod, state: 'sealed', sealIf: tag! })
      expect(told.entries[0]?.state).to.equal('draining')
    })
  })

  describe('a wrong list is refused', () => {
    for (const [successors, message] of [
      [[], /successors/],
      ['x', /successors must be an object/],
      [{ x: [] }, /not a port: x/],
      [{ 0: [] }, /not a port: 0/],
      [{ '080': [] }, /not a port: 080/],
      [{ 80: 'x' }, /\["80"\] must be a list/],
      [{ 80: ['x:80'] }, /\["80"\]\[0\] must be "address:port"/],
      [{ 80: ['10.0.0.1'] }, /\["80"\]\[0\] must be/],
      [{ 80: ['fd00::1:99999'] }, /\["80"\]\[0\] must be/],
      [{ 80: { a: '10.0.0.1:80' } }, /\["80"\] must be a list/],
      [{ 80: Array.from({ length: 17 }, (_, i) => `10.0.0.${i + 1}:80`) }, /at most 16/],
      [Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i + 1, ['10.0.0.1:80']])), /at most 16/]
    ] as const)
      it(JSON.stringify(successors).slice(0, 40), async () => {
        const entries = [{ ...old.entry(), state: 'draining', ttl: 9, successors }]
        const { status, body } = await barrier().send('PUT', '/v1/barrier/entries', { entries })
        expect(status, JSON.stringify(body)).to.equal(Array.isArray(successors) ? 200 : 400)
        if (status === 400) expect(body.error_msg).to.match(message)
      })
  })
})
