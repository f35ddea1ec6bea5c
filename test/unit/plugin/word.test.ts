import { expect } from 'chai'
import type { EntryOut, Word } from '../../plugin/barrier.ts'
import { eventually } from '../../plugin/eventually.ts'
import type { Kinds } from '../../plugin/gateway.ts'
import { createRandom } from '../../../sandbox/random.ts'
import { startSide, type Side } from './side.ts'

const at = (n: number, port = 80) => ({ host: `10.0.0.${n}`, port, weight: 1 })
const [A, B, C] = [at(1), at(2), at(3)]
const map = (...nodes: { host: string; port: number }[]) =>
  Object.fromEntries(nodes.map(({ host, port }) => [`${host}:${port}`, 1]))
const pod = (n: number) => ({ uid: `pod-${n}`, ip: `10.0.0.${n}` })
const NOTHING = { said: 3, asked: 3, places: 0, sole: [], succeeded: [], hidden: 0, others: [], cut: 0 }
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
    await side.configure({ kinds: inRoutes([A, B]) })
    await says(side, 1, { places: 1, others: [other(1, B, C)] })
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
  'every kind of place': async side => {
    await side.barrier.put(pod(1))
    await side.configure({
      kinds: {
        upstreams: [
          { id: 'u', nodes: [A, B] },
          { id: 'unused', nodes: [A] }
        ],
        routes: [
          { id: 'r1', uri: '/1', upstream_id: 'u' },
          { id: 'r2', uri: '/2', upstream: { nodes: [A] } },
          split('r3', { upstream: { nodes: map(A, C) } })
        ],
        services: [split('s', { upstream_id: 'u' }), { id: 's2', upstream: { nodes: [B, A] } }],
        plugin_configs: [split('p', { upstream: { nodes: [A, C] } })],
        global_rules: [split('g', { upstream: { nodes: map(A) } })],
        consumers: [split('c', { upstream: { nodes: [A, B, C] } })],
        consumer_groups: [split('cg', { upstream: { nodes: [C] } })]
      }
    })
    const sole = ['global_rules/g/traffic-split', 'routes/r2']
    await says(side, 1, { places: 7, sole, others: [other(2, B), other(1, B, C), other(2, C)] })
  },
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
  'an upstream that loses its last reference': async side => {
    const upstreams = [{ id: 'u', nodes: [A] }]
    await side.barrier.put(pod(1))
    await side.configure({ kinds: { upstreams } })
    await says(side, 1, {})
    await side.configure({ kinds: { upstreams, routes: [{ id: '1', uri: '/', upstream_id: 'u' }] } })
    await says(side, 1, { places: 1, sole: ['upstreams/u'] })
    await side.configure({ kinds: { upstreams } })
    await says(side, 1, {})
  },
  'entries that are each the other choice': async side => {
    await side.configure({ kinds: inRoutes([A, B], [A, B, C]) })
    await side.barrier.put(pod(1))
    await says(side, 1, { places: 2, others: [other(1, B), other(1, B, C)] })
    await side.barrier.put({ ...pod(2), port: 80 })
    await says(side, 1, { places: 2, sole: ['routes/1'], others: [other(1, C)] })
    await says(side, 2, { places: 2, sole: ['routes/1'], others: [other(1, C)] })
    await side.barrier.remove('pod-2')
    await says(side, 1, { places: 2, others: [other(1, B), other(1, B, C)] })
  },
  'ports and schemes': async side => {
    const nodes = [{ host: '10.0.0.1', weight: 1 }, at(2, 8443), { host: '[fd00:0::1]', weight: 1 }]
    await side.configure({ kinds: { routes: [{ id: '1', upstream: { scheme: 'https', nodes } }] } })
    await side.barrier.put({ ...pod(1), port: 443 }, { ...pod(2), port: 80 })
    const others = [{ places: 1, nodes: ['10.0.0.2:8443', '[fd00::1]:443'], more: 0 }]
    await says(side, 1, { places: 1, others })
    await says(side, 2, {})
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
  },
  'discovery and names': async side => {
    const routes = [
      { id: '1', uri: '/1', upstream: discovered },
      { id: '2', uri: '/2', upstream: { nodes: [{ host: 'shop.example', port: 80, weight: 1 }] } },
      { id: '3', uri: '/3', upstream: { nodes: [{ host: 'nowhere.example', port: 80, weight: 1 }] } },
      { id: '4', uri: '/4', upstream: { ...discovered, discovery_type: 'consul' } }
    ]
    await side.configure({ kinds: { routes } })
    await side.barrier.put(pod(1))
    await says(side, 1, { places: 1, hidden: 2, others: [other(1, B)] })
    await side.configure({ kinds: { routes }, discovered: [A] })
    await says(side, 1, { places: 2, hidden: 2, sole: ['routes/1'], others: [other(1, B)] })
    await side.configure({ kinds: { routes }, discovered: [A, C] })
    await says(side, 1, { places: 2, hidden: 2, others: [other(1, B), other(1, C)] })
    await side.configure({ kinds: { routes }, discovered: [] })
    await says(side, 1, { places: 1, hidden: 2, others: [other(1, B)] })
  },
  'a seal just after discovery has found other nodes': async side => {
    const kinds = { routes: [{ id: '1', uri: '/', upstream: discovered }] }
    await side.configure({ kinds, discovered: [A, B] })
    await side.barrier.put(pod(1))
    const { tag } = await says(side, 1, { places: 1, others: [other(1, B)] })
    await side.configure({ kinds, discovered: [A] })
    expect(await sealed(side, 1, tag)).to.equal(false)
    await says(side, 1, { places: 1, sole: ['routes/1'] })
  },
  'a name that does not resolve, and other nodes': async side => {
    const nowhere = { host: 'nowhere.example', port: 80, weight: 1 }
    await side.configure({ kinds: inRoutes([nowhere, A], [A, nowhere, B], [nowhere]) })
    await side.barrier.put(pod(1))
    await says(side, 1, { places: 2, hidden: 3, sole: ['routes/1'], others: [other(1, B)] })
  },
  'a worker that is behind': async side => {
    await side.barrier.put(pod(1))
    await side.configure({ kinds: inRoutes([A, B], [A, B]), behind: inRoutes([A]) })
    const told = await says(side, 1, { places: 2, sole: ['routes/1'], others: [other(2, B)] })
    await side.configure({ kinds: inRoutes([A, B], [A, C]) })
    const { tag } = await says(side, 1, { places: 2, others: [other(1, B), other(1, C)] })
    expect(await sealed(side, 1, told.tag)).to.equal(false)
    await eventually('it is sealed', () => sealed(side, 1, tag))
  },
  'a seal by words that name a place without another node: the agent has judged them': async side => {
    await side.configure({ kinds: inRoutes([A], [A, B]) })
    await side.barrier.put(pod(1))
    const { tag } = await says(side, 1, { places: 2, sole: ['routes/1'], others: [other(1, B)] })
    expect(await sealed(side, 1, undefined)).to.equal(false)
    await eventually('it is sealed', () => sealed(side, 1, tag))
  },
  'a seal that depends on what was read': async side => {
    await side.configure({ kinds: inRoutes([A, B]) })
    await side.barrier.put(pod(1))
    const first = await says(side, 1, { places: 1, others: [other(1, B)] })
    await side.configure({ kinds: inRoutes([A, C]) })
    const second = await says(side, 1, { places: 1, others: [other(1, C)] })
    expect(await sealed(side, 1, first.tag)).to.equal(false)
    expect(await sealed(side, 1, undefined)).to.equal(false)
    // after a removal, a put makes a new entry, which needs new reports
    await side.barrier.remove('pod-1')
    await eventually('it is sealed', () => sealed(side, 1, second.tag))
    // a sealed entry stays sealed
    expect(await sealed(side, 1, first.tag)).to.equal(true)
    await side.configure({ kinds: inRoutes([A, B]) })
    expect((await says(side, 1, { places: 1, others: [other(1, B)] })).tag).to.equal(first.tag)
  },
  'a worker that is frozen': async side => {
    await side.configure({ kinds: inRoutes([A, B]) })
    await side.barrier.put(pod(1))
    await says(side, 1, { places: 1, others: [other(1, B)] })
    side.freeze()
    try {
      const words = await several('two have spoken', async () => {
        const { entries } = await side.barrier.put(pod(1), pod(3))
        expect(entries[1]!.word.said).to.equal(2)
        return entries.map(({ word }) => word)
      })
      // the frozen worker's report on the first entry stays valid
      expect(words[0]).to.deep.include({ ...NOTHING, places: 1, others: [other(1, B)] })
      expect(words[0]).to.have.property('tag')
      expect(words[1]).to.deep.equal({ ...NOTHING, said: 2 })
      // the report is no longer valid after a new put, which may be about another pod with the same address
      await several('it is removed', () => side.barrier.remove('pod-1'))
      await several('it is put', () => side.barrier.put(pod(1)))
      await several('two have spoken of the new one, and it stays so', async () => {
        for (let looks = 0; looks < 10; looks += 1) {
          const { entries } = await side.barrier.state()
          const { word } = entries.find(({ uid }) => uid === 'pod-1')!
          expect(word).to.deep.equal({ ...NOTHING, said: 2, places: 1, others: [other(1, B)] })
        }
      })
    } finally {
      side.thaw()
    }
    await says(side, 3, {})
  },
  'a worker that is killed, and its successor': async side => {
    await side.configure({ kinds: inRoutes([A, B]) })
    await side.barrier.put(pod(1))
    const { tag } = await says(side, 1, { places: 1, others: [other(1, B)] })
    side.kill()
    expect((await says(side, 1, { places: 1, others: [other(1, B)] })).tag).to.equal(tag)
  }
}

/** Tries several connections at once, because a frozen worker accepts connections and never answers. */
async function several<T>(what: string, look: () => Promise<T>): Promise<T> {
  let found: T | undefined
  await eventually(what, async () => {
    found = await Promise.any(Array.from({ length: 8 }, look))
    return true
  })
  return found as T
}

async function sealed(side: Side, n: number, sealIf = 'none'): Promise<boolean> {
  const [entry] = (await side.barrier.put({ ...pod(n), state: 'sealed', sealIf })).entries
  return entry!.state === 'sealed'
}

/** Waits until the word is this. A field that `part` lacks has the value of a word without places. */
async function says(side: Side, n: number, part: Partial<Word>, others = part.others ?? []): Promise<Word> {
  let last: Word | undefined
  await eventually(`the word is ${JSON.stringify(part)}`, async () => {
    const { entries } = await side.barrier.state()
    last = entries.find((e: EntryOut) => e.uid === `pod-${n}`)?.word
    const { tag, ...word } = last!
    expect({ ...word, others: word.others.slice(0, others.length || 1) }, JSON.stringify(last)).to.deep.equal(
      { ...NOTHING, ...part, others }
    )
    expect(tag).to.match(/^[0-9a-f]{16}$/)
    return true
  })
  return last!
}

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
    const { said, places, sole, succeeded, hidden, others, cut } = word
    return [`${uid} ${ip} ${port}`, { said, places, sole, succeeded, hidden, others, cut }]
  })
  return Object.fromEntries(named)
}

describe("The worker's word", () => {
  for (const [name, act] of Object.entries(SCENARIOS))
    it(name, async () => {
      const side = await startSide()
      try {
        // workers compute words only after this first put
        await side.barrier.put({ uid: 'first', ip: '10.9.9.9' })
        await side.barrier.remove('first')
        await act(side)
      } finally {
        await side.stop()
      }
    })

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
          ...(random() < 0.7 && { successors: randomSuccessors(random) })
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
