import { expect } from 'chai'
import { NOTHING, type EntryOut, type Word } from '../../plugin/barrier.ts'
import { eventually } from '../../plugin/eventually.ts'
import type { Kinds } from '../../plugin/gateway.ts'
import { createRandom } from '../../../sandbox/random.ts'
import { startSide, type Side } from './side.ts'

const at = (n: number, port = 80) => ({ host: `10.0.0.${n}`, port, weight: 1 })
const [A, B, C] = [at(1), at(2), at(3)]
const pod = (n: number) => ({ uid: `pod-${n}`, ip: `10.0.0.${n}` })
const other = (places: number, ...nodes: { host: string; port: number }[]) => ({
  places,
  nodes: nodes.map(({ host, port }) => `${host}:${port}`),
  more: 0
})
const inRoutes = (...all: object[][]): Kinds => ({
  routes: all.map((nodes, i) => ({ id: `${i + 1}`, uri: `/${i}`, upstream: { type: 'roundrobin', nodes } }))
})
const split = (id: string, choice: object) => ({
  id,
  plugins: { 'traffic-split': { rules: [{ weighted_upstreams: [{ weight: 1 }, { weight: 1, ...choice }] }] } }
})
const discovered = { type: 'roundrobin', service_name: 'shop/web:http', discovery_type: 'kubernetes' }

const to = (...nodes: { host: string; port: number }[]) => ({
  successors: { 80: nodes.map(({ host, port }) => `${host}:${port}`) }
})

type Act = (side: Side) => Promise<void>

const SCENARIOS: Record<string, Act> = {
  'a place is not sole while a successor is free, and names it': async side => {
    const succeeded = ['routes/1']
    await side.configure({ kinds: inRoutes([A]) })
    await side.barrier.put({ ...pod(1), ...to(C, B) })
    await says(side, 1, { places: 1, succeeded, others: [other(1, B, C)] })
    await side.barrier.put({ ...pod(1), ...to(C) })
    await says(side, 1, { places: 1, succeeded, others: [other(1, C)] })
    await side.configure({ kinds: inRoutes([A, B], [B, A]) })
    await says(side, 1, { places: 2, others: [other(2, B, C)] })
    await side.configure({ kinds: inRoutes([A]) })
    await side.barrier.put({ ...pod(1), successors: {} })
    await says(side, 1, { places: 1, sole: ['routes/1'] })
  },
  'a successor that ends is in the places that it took over, and is followed to its own': async side => {
    await side.configure({ kinds: inRoutes([A]) })
    await side.barrier.put({ ...pod(1), ...to(B) }, pod(2))
    await says(side, 1, { places: 1, sole: ['routes/1'] })
    await says(side, 2, { places: 1, sole: ['routes/1'] })
    await side.barrier.put({ ...pod(2), ...to(C) })
    await says(side, 1, { places: 1, succeeded: ['routes/1'], others: [other(1, C)] })
    await says(side, 2, { places: 1, succeeded: ['routes/1'], others: [other(1, C)] })
    await side.barrier.put({ ...pod(1), ...to(C) })
    await says(side, 2, NOTHING)
    await side.barrier.put({ ...pod(1), ...to(B) })
    await says(side, 2, { places: 1, succeeded: ['routes/1'], others: [other(1, C)] })
    await side.barrier.remove('pod-1')
    await says(side, 2, NOTHING)
  },
  ...Object.fromEntries(
    [{ weight: 0 }, { priority: -1 }].map(differs => [
      `a standby (${JSON.stringify(differs)}) is another choice if there is none of its standing, and no successor (A7)`,
      async (side: Side) => {
        const standby = { ...B, ...differs }
        await side.barrier.put(pod(1))
        await side.configure({ kinds: inRoutes([A, standby]) })
        await says(side, 1, { places: 1, others: [other(1, B)] })
        await side.barrier.put({ ...pod(1), ...to(C) })
        await says(side, 1, { places: 1, succeeded: ['routes/1'], others: [other(1, C)] })
        await side.configure({ kinds: inRoutes([A, standby, C]) })
        await says(side, 1, { places: 1, others: [other(1, C)] })
        await side.barrier.put({ ...pod(1), successors: {} }, pod(2))
        await side.configure({ kinds: inRoutes([A, standby]) })
        await says(side, 1, { places: 1, sole: ['routes/1'] })
      }
    ])
  ),
  'a disabled route and a choice of weight 0 are no places (A14)': async side => {
    const only = { upstream: { nodes: [A] } }
    await side.barrier.put(pod(1))
    await side.configure({
      kinds: { routes: [{ ...split('1', only), ...only, status: 0 }] }
    })
    await says(side, 1, NOTHING)
    await side.configure({ kinds: { routes: [split('1', { ...only, weight: 0 })] } })
    await says(side, 1, NOTHING)
    const choices = [{ ...only, weight: 0 }, { weight: 0 }]
    await side.configure({
      kinds: {
        routes: [{ id: '1', plugins: { 'traffic-split': { rules: [{ weighted_upstreams: choices }] } } }]
      }
    })
    await says(side, 1, { places: 1, sole: ['routes/1/traffic-split'] })
  },
  'ways that an entry asks for are found by address, port and name, and never denied': async side => {
    const nodes = [at(9, 30080), { host: 'web.shop.svc.corp', port: 80, weight: 1 }, at(7), B]
    const found = (way: string, node: string, place = 'routes/1') => ({ way, place, node })
    await side.barrier.put({ ...pod(1), ways: ['web', '10.0.0.7'] })
    await side.barrier.put({ ...pod(1), ways: ['web.shop', 'port/30080'] })
    await side.barrier.put({ ...pod(3), ways: ['port/30080'] })
    await says(side, 1, { ways: { asked: 4, found: [], more: 0 } })
    await says(side, 3, { ways: { asked: 1, found: [], more: 0 } })
    await side.configure({ kinds: inRoutes(nodes) })
    const all = [
      found('10.0.0.7', '10.0.0.7:80'),
      found('port/30080', '10.0.0.9:30080'),
      found('web.shop', 'web.shop.svc.corp:80')
    ]
    await says(side, 1, { hidden: 1, ways: { asked: 4, found: all, more: 0 } })
    await side.configure({ kinds: inRoutes([B], [B, at(8, 30080)]) })
    const later = found('port/30080', '10.0.0.8:30080', 'routes/2')
    await says(side, 1, { ways: { asked: 4, found: [later], more: 0 } })
    await says(side, 3, { ways: { asked: 1, found: [later], more: 0 } })
    await side.configure({ kinds: { ...inRoutes(nodes, [B]), upstreams: [{ id: 'u', nodes }] } })
    await says(side, 1, { hidden: 1, ways: { asked: 4, found: all, more: 0 } })
    await side.configure({ kinds: inRoutes(Array.from({ length: 70 }, (_, i) => at(100 + i, 30080))) })
    const first = Array.from({ length: 64 }, (_, i) => found('port/30080', `10.0.0.${100 + i}:30080`))
    await says(side, 3, { ways: { asked: 1, found: first, more: 6 } })
    await side.barrier.remove('pod-1')
    await side.barrier.put(pod(1))
    await says(side, 1, NOTHING)
  },
  'more choices than a word names': async side => {
    const many = Array.from({ length: 20 }, (_, i) => at(100 + i))
    const services = many.map((node, i) => ({ id: `${i}`, upstream: { nodes: [A, node] } }))
    const routes = many.map((_, i) => ({ id: `r${i}`, upstream: { nodes: [A] } }))
    const rules = [split('g', { upstream: { nodes: [A, ...many] } })]
    await side.configure({ kinds: { routes, services, global_rules: rules } })
    await side.barrier.put(pod(1))
    const others = many.slice(0, 16).map(({ host }) => ({ places: 1, nodes: [host], more: 0 }))
    const sole = routes.map(({ id }) => `routes/${id}`).sort()
    await says(side, 1, { places: 41, sole: sole.slice(0, 16), cut: 5 }, others)
    const ports = many.map((_, i) => ({
      id: `p${i}`,
      upstream: { nodes: [A, at(2, 100 + i), { ...at(3, 200 + i), host: '[fd00::1]' }] }
    }))
    await side.configure({ kinds: { services: ports } })
    await says(side, 1, { places: 20 }, [{ places: 20, nodes: ['10.0.0.2', '[fd00::1]'], more: 0 }])
    await side.barrier.remove('pod-1')
    await side.barrier.put({ ...pod(1), port: 80 })
    const named = ports.slice(0, 16).map(({ upstream: { nodes } }) => other(1, ...nodes.slice(1)))
    await says(side, 1, { places: 20, cut: 4 }, named)
  }
}

/** Waits until the word is this. A field that `part` lacks has the value of a word without places. */
const says = (side: Side, n: number, part: Partial<Word>, others = part.others ?? []) =>
  eventually(`the word is ${JSON.stringify(part)}`, async () => {
    const { entries } = await side.barrier.state()
    const { tag, ...word } = entries.find((e: EntryOut) => e.uid === `pod-${n}`)!.word
    const named = word.others.slice(0, others.length || 1)
    expect({ ...word, others: named }).to.deep.equal({ ...NOTHING, ...part, others })
    expect(tag).to.match(/^[0-9a-f]{16}$/)
    return true
  })

/** Returns random objects with few addresses, so that different places often list the same address. */
function randomKinds(random: () => number): Kinds {
  const some = (n: number) => Math.floor(random() * n)
  const nodes = () => Array.from({ length: 1 + some(3) }, () => at(1 + some(5), 80 + some(2)))
  const upstream = () =>
    random() < 0.2
      ? discovered
      : { nodes: random() < 0.2 ? [{ host: 'shop.example', port: 80, weight: 1 }] : nodes() }
  const refer = (id: string) =>
    [{ id, upstream_id: `u${some(3)}` }, { id, upstream: upstream() }, split(id, { upstream: upstream() })][
      some(3)
    ]!
  const list = (most: number, of: (id: string) => object) =>
    Array.from({ length: some(most + 1) }, (_, i) => of(`${i}`))
  return {
    upstreams: list(3, id => ({ id: `u${id}`, ...upstream() })),
    routes: list(4, refer),
    services: list(2, refer),
    global_rules: list(1, id => split(id, { upstream_id: `u${some(3)}` }))
  }
}

/** Returns random successors among the same addresses. So some successors also end, and some form circles. */
function randomSuccessors(random: () => number): Record<string, string[]> {
  const some = (n: number) => Math.floor(random() * n)
  const list = () => Array.from({ length: some(3) }, () => `10.0.0.${1 + some(6)}:${80 + some(2)}`)
  return { 80: list(), ...(random() < 0.5 && { 81: list() }) }
}

/** Returns the words on all entries, on which all workers must have reported. */
async function wordsOf(side: Side): Promise<Record<string, unknown>> {
  const { entries } = await side.barrier.state()
  for (const { word } of entries) expect(word).to.include({ said: 3, asked: 3 })
  const named = entries.map(({ uid, ip, port, word }): [string, unknown] => {
    const { tag: _, ...said } = word
    return [`${uid} ${ip} ${port}`, said]
  })
  return Object.fromEntries(named)
}

describe("The worker's word", () => {
  const play = async (act: Act) => {
    const side = await startSide()
    try {
      // workers compute words only after this first put
      await side.barrier.put({ uid: 'first', ip: '10.9.9.9' })
      await side.barrier.remove('first')
      await act(side)
    } finally {
      await side.stop()
    }
  }
  for (const [name, act] of Object.entries(SCENARIOS)) it(name, () => play(act))

  it('finds what plugins and Kafka connect to by themselves, which is no choice', () =>
    play(async side => {
      const plugins = {
        'forward-auth': { uri: 'http://a.shop.svc:80/x' },
        'proxy-rewrite': { uri: '/no', host: '10.0.0.1' },
        'ai-proxy-multi': { instances: [{ override: { endpoint: 'https://u@b/v1' } }, { name: 'host' }] },
        'kafka-logger': { brokers: [{ host: '10.0.0.1', port: 9092 }], broker_list: { d: 9092 } },
        'tcp-logger': { host: 'f', port: 30080 },
        'graphql-limit-count': { redis_host: '[fd00::2]', redis_port: 6379 },
        'limit-count': { redis_cluster_nodes: ['10.0.0.1:6379', '[fd00::1]:6379'], redis_port: 1 },
        workflow: { rules: [{ actions: [['limit-count', { redis_host: 'e' }]] }] },
        opa: { host: 7 }
      }
      await side.configure({
        kinds: { routes: [{ id: 'x', plugins, upstream: { scheme: 'kafka', nodes: [A] } }] }
      })
      const ways = ['b', 'd', 'e', 'a.shop', 'fd00::1', 'fd00::2', 'port/30080', 'host', 'no']
      await side.barrier.put({ ...pod(1), ways })
      const found = [
        ['10.0.0.1', '10.0.0.1:6379', 'plugins/limit-count'],
        ['10.0.0.1', '10.0.0.1:80', 'kafka'],
        ['10.0.0.1', '10.0.0.1:9092', 'plugins/kafka-logger'],
        ['a.shop', 'a.shop.svc:80', 'plugins/forward-auth'],
        ['b', 'b', 'plugins/ai-proxy-multi'],
        ['d', 'd:9092', 'plugins/kafka-logger'],
        ['e', 'e', 'plugins/workflow'],
        ['fd00::1', '[fd00::1]:6379', 'plugins/limit-count'],
        ['fd00::2', '[fd00::2]:6379', 'plugins/graphql-limit-count'],
        ['port/30080', 'f:30080', 'plugins/tcp-logger']
      ].map(([way = '', node = '', by]) => ({ way, place: `routes/x/${by}`, node }))
      await says(side, 1, { ways: { asked: 9, found, more: 0 } })
    }))

  it('is after each of many changes that of a worker that has just started', async () => {
    // Fixed, since only three of four seeds find a worker that misses a change.
    const seed = Number(process.env['SEED'] ?? 1)
    const random = createRandom(seed)
    const sides = [await startSide(), await startSide()] as const
    const [old, young] = sides
    try {
      for (const side of sides) await side.configure({ kinds: inRoutes([A, B]) })
      await Promise.all(sides.map(side => side.barrier.put({ uid: 'always', ip: '10.0.0.1' })))
      for (let step = 0; step < 40; step += 1) {
        const uid = `pod-${Math.floor(random() * 6)}`
        const entry = {
          uid,
          ip: `10.0.0.${1 + Math.floor(random() * 5)}`,
          ...(random() < 0.5 && { port: 80 }),
          ...(random() < 0.7 && { successors: randomSuccessors(random) }),
          ways: ['10.0.0.2', 'port/81', 'shop.example', '10.0.0.4'].filter(() => random() < 0.3)
        }
        const kinds = randomKinds(random)
        const found = [1, 2, 3, 4].filter(() => random() < 0.5).map(n => at(n))
        const what = Math.floor(random() * 3)
        for (const side of sides) {
          if (what === 0) await side.barrier.put(entry)
          else if (what === 1) await side.barrier.remove(uid)
          else await side.configure({ kinds: { upstreams: [], ...kinds }, discovered: found })
        }
        for (const worker of [0, 1, 2]) young.kill(worker)
        await eventually(`seed ${seed}, step ${step}: both say the same`, async () => {
          const [words, other] = [await wordsOf(old), await wordsOf(young)]
          for (const uid of Object.keys(other))
            expect(words[uid], `${uid}: ${JSON.stringify([words[uid], other[uid]])}`).to.deep.equal(
              other[uid]
            )
          expect(words).to.have.all.keys(other)
          return true
        })
      }
    } finally {
      await Promise.all(sides.map(side => side.stop()))
    }
  })
})
