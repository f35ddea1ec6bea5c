import { once } from 'node:events'
import { expect } from 'chai'
import { NOTHING, type Word } from './barrier.ts'
import { rowsOf } from '../build/rows.ts'
import { eventually } from './eventually.ts'
import { Gateway, type Kinds, type Objects } from './gateway.ts'

const A = { host: '10.0.0.1', port: 80, weight: 1 }
const B = { host: '10.0.0.2', port: 80, weight: 1 }
const pod = { uid: 'a', ip: A.host }
/** Returns the part of a word for this many places that have this one other choice. */
const other = (node: string, places = 1) => [{ places, nodes: [node], more: 0 }]
const b = other('10.0.0.2:80')
/** The form of traffic-split: a map of address to weight. */
const map = { '10.0.0.1:80': 1, '10.0.0.2:80': 1 }
const split = (choice: object) => ({
  id: '1',
  plugins: { 'traffic-split': { rules: [{ weighted_upstreams: [{ weight: 1 }, choice] }] } }
})
const route = { id: '1', upstream_id: 'u' }

describe("The worker's word", () => {
  let gateway: Gateway

  afterEach(async () => {
    await gateway.stop()
  })

  const start = async (objects: Objects, options: Parameters<typeof Gateway.start>[0] = {}) => {
    gateway = await Gateway.start(options)
    gateway.barrier.words = true
    await gateway.configured({ objects })
  }

  const wordOf = async (uid = 'a') => (await gateway.barrier.state()).entries.find(e => e.uid === uid)!.word

  /** Waits until the word is this. */
  const says = async (part: Partial<Word>, uid = 'a') => {
    let last: Word | undefined
    await eventually(`the word is ${JSON.stringify(part)}`, async () => {
      last = await wordOf(uid)
      expect(last, JSON.stringify(last)).to.deep.include({ said: 3, ...part })
      return true
    })
    return last!
  }

  const PLACES = rowsOf('places.yaml', import.meta.url) as Readonly<Record<string, Kinds>>

  it('is computed for every entry, whether or not its put waits for it, and left out of a list that needs none', async () => {
    await start({ kinds: { upstreams: [{ id: 'u', nodes: [A, B] }], routes: [route] } })
    gateway.barrier.words = false
    await gateway.barrier.put({ ...pod, state: 'sealed' })
    await says({ places: 1, sole: [] })
    const { body } = await gateway.barrier.send('GET', '/v1/barrier/state?words=false')
    expect(body.entries[0]).not.to.have.property('word')
  })

  it('names every kind of place', async () => {
    await start({ kinds: { routes: [] } })
    await gateway.barrier.put(pod)
    for (const [name, kinds] of Object.entries(PLACES)) {
      const all = { upstreams: [], routes: [], services: [], plugin_configs: [], global_rules: [] }
      await gateway.configured({
        objects: { kinds: { ...all, consumers: [], consumer_groups: [], ...kinds } }
      })
      const { tag, ...word } = await says({ places: 1 })
      expect(word, name).to.deep.equal({ ...NOTHING, places: 1, others: b })
      expect(tag).to.match(/^[0-9a-f]{16}$/)
    }
  })

  it('calls a place sole when all of its nodes are denied, and each port is a node of its own', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put({ ...pod, port: 80 }, { uid: 'b', ip: B.host, port: 81 })
    await says({ places: 1, sole: [], others: b })
    await says(NOTHING, 'b')
    await gateway.barrier.put({ uid: 'c', ip: B.host })
    await says({ places: 1, sole: ['routes/1'], others: [] })
    await says({ places: 1, sole: ['routes/1'] }, 'c')
    await gateway.barrier.remove('c')
    await says({ places: 1, sole: [], others: b })
  })

  it('merges the words of workers that differ', async () => {
    const places = (...all: object[][]) => ({
      routes: all.map((nodes, i) => ({ id: `${i + 1}`, upstream: { nodes } }))
    })
    const C = { ...B, port: 81 }
    await start({ kinds: places([A, B]), worker: { 0: places([A, C], [A, C]), 2: places([A], [A, B], [A]) } })
    await gateway.barrier.put(pod)
    const others = [...b, ...other('10.0.0.2:81', 2)]
    await says({ places: 3, sole: ['routes/1', 'routes/3'], others })
  })

  it('comes with the answer to the put, even after a reload', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    const told = async () => {
      let n = 0
      // a put waits only a few milliseconds for the words, which may be too short on a busy machine. So the test puts again
      await eventually('a put brings the words', async () => {
        const answer = await gateway.barrier.put({ ...pod, uid: `a${n++}` })
        return answer.entries[0]?.word.said === 3
      })
    }
    await told()
    const old = gateway.workers()
    gateway.reload()
    await eventually('the workers are others', async () => {
      const { workers, fit } = await gateway.barrier.state()
      return fit && workers.length === 3 && workers.every(w => !old.includes(w.pid))
    })
    await told()
  })

  it('comes by a timer if workers cannot be woken', async () => {
    await start(
      { kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } },
      {
        // a folder is where the socket should be
        early: 'os.execute("mkdir " .. ngx.config.prefix() .. "apisix-drain.wake")'
      }
    )
    await gateway.barrier.put(pod)
    await says({ places: 1, sole: [], others: b })
  })

  for (const standalone of [false, true]) {
    it(`becomes void in the same step as a change of the configuration, ${standalone ? 'standalone' : 'etcd'}`, async () => {
      const kinds = (n: number) => ({
        routes: [{ id: '1', name: `${n}`, upstream: { nodes: n % 2 ? [A] : [A, B] } }]
      })
      await start({ kinds: kinds(0), standalone })
      await gateway.barrier.put(pod)
      for (let n = 1; n <= 10; n++) {
        await says({ places: 1, sole: n % 2 ? [] : ['routes/1'] })
        await gateway.configure({ objects: { kinds: kinds(n), standalone } })
      }
      await says({ places: 1, sole: [] })
      expect(await gateway.door('/stale')).to.equal('0\n')
    })

    it(`reflects removed objects, ${standalone ? 'standalone' : 'etcd'}`, async () => {
      const routes = [1, 2, 3].map(id => ({ id: `${id}`, upstream: { nodes: [A, B] } }))
      await start({ kinds: { routes }, standalone })
      await gateway.barrier.put(pod)
      await says({ places: 3 })
      await gateway.configured({ objects: { kinds: { routes: routes.slice(1) }, standalone } })
      await says({ places: 2 })
    })
  }

  it('is not given while the configuration is reread', async () => {
    const kinds = { routes: [{ id: '1', upstream: { nodes: [A] } }] }
    await start({ kinds, reload: { routes: true } })
    await gateway.barrier.put(pod)
    await gateway.lookedAgain()
    expect(await wordOf()).to.deep.include({ said: 0, asked: 3 })
    await gateway.configured({ objects: { kinds } })
    await says({ places: 1, sole: ['routes/1'] })
  })

  /** Runs `act` while one worker is frozen. That worker never answers the connections that it has accepted, so `other` tries several. */
  const frozen = async (
    act: (other: (what: string, check: () => Promise<unknown>) => Promise<unknown>) => Promise<void>
  ) => {
    const pid = gateway.workers()[0]!
    process.kill(pid, 'SIGSTOP')
    try {
      await act(byAnother)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  }
  // The worker may have accepted all connections of a try just before it froze. So each try ends after a second, and a new try begins.
  const byAnother = (what: string, check: () => Promise<unknown>) =>
    eventually(what, async () => {
      const givenUp = AbortSignal.timeout(1000)
      const late = once(givenUp, 'abort').then(() => Promise.reject(givenUp.reason))
      await Promise.race([Promise.any(Array.from({ length: 8 }, check)), late])
      return true
    })

  const seal = async (tag: string | undefined, uid = 'a') => {
    const answer = await gateway.barrier.put({ ...pod, uid, state: 'sealed', sealIf: tag ?? 'none' })
    return answer.entries[0]!
  }

  it('can be the condition of a seal', async () => {
    const kinds = (nodes: object[]) => ({ routes: [{ id: '1', upstream: { nodes } }] })
    await start({ kinds: kinds([A, B]) })
    await gateway.barrier.put(pod)
    const { tag: first } = await says({ places: 1, others: b })
    // now the other choice is one that the agent did not consider
    const C = { ...B, port: 81 }
    await gateway.configured({ objects: { kinds: kinds([A, C]) } })
    expect(await seal(first)).to.include({ state: 'draining' })
    const { tag: second } = await says({ places: 1, others: other('10.0.0.2:81') })
    expect(second).not.to.equal(first)
    // no other choice at all
    await gateway.configured({ objects: { kinds: kinds([A]) } })
    expect(await seal(second)).to.include({ state: 'draining' })
    const { tag: sole } = await says({ sole: ['routes/1'] })
    expect(sole).not.to.equal(second)
    await gateway.configured({ objects: { kinds: kinds([A, B]) } })
    expect((await says({ places: 1, others: b })).tag).to.equal(first)
    await eventually('it is sealed: a busy machine may need more than the few milliseconds', async () => {
      return (await seal(first)).state === 'sealed'
    })
    expect(await seal('another')).to.include({ state: 'sealed' })
  })

  it('lets a seal through that names a place without another node: the agent has judged it', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A] } }] } })
    await gateway.barrier.put(pod)
    const { tag } = await says({ places: 1, sole: ['routes/1'] })
    expect(await seal('another')).to.include({ state: 'draining' })
    await eventually('it is sealed: a busy machine may need more than the few milliseconds', async () => {
      return (await seal(tag)).state === 'sealed'
    })
  })

  it('lets no seal through while a worker has not spoken of this entry', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put(pod)
    const { tag } = await says({ places: 1 })
    await frozen(async other => {
      // the frozen worker's report on another entry still counts
      await other('two have spoken of b', async () => {
        const { entries } = await gateway.barrier.put(pod, { uid: 'b', ip: '10.0.0.9' })
        expect(entries[0]!.word).to.deep.include({ said: 3, tag })
        expect(entries[1]!.word).to.deep.include({ said: 2, asked: 3 })
        expect(entries[1]!.word).not.to.have.property('tag')
        // a new entry for the same pod: the frozen worker has not reported on it
        expect(await seal(tag, 'again')).to.include({ state: 'draining' })
      })
    })
    await eventually('all have', async () => (await seal(tag, 'again')).state === 'sealed')
  })

  it('lets no seal through while a worker is blocked for 3 s', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put({ ...pod, uid: 'before' })
    const { tag } = await says({ places: 1 }, 'before')
    const blocked = gateway.door('/block')
    await byAnother('a worker is blocked', async () =>
      expect(Number(await gateway.door('/blocked'))).to.be.above(0)
    )
    const from = performance.now()
    do {
      await byAnother('the others have spoken', async () => {
        const { entries } = await gateway.barrier.put(pod)
        expect(entries[0]!.word).to.deep.include({ said: 2, asked: 3 })
        expect(await seal(tag)).to.include({ state: 'draining' })
      })
    } while (performance.now() < from + 3000)
    await byAnother('it goes on', () => gateway.door('/unblock'))
    await blocked
    await eventually('it is sealed', async () => (await seal(tag)).state === 'sealed')
  })

  it('is missing from a frozen worker, and no other worker replaces it', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put(pod)
    await says({ places: 1 })
    await frozen(async other => {
      await other('the others have spoken', async () => {
        const { word } = (await gateway.barrier.put({ uid: 'b', ip: B.host })).entries[0]!
        expect(word).to.deep.include({ said: 2, asked: 3, sole: ['routes/1'] })
      })
    })
    await says({ places: 1, sole: ['routes/1'] }, 'b')
  })

  it('no longer allows a seal when discovery has just found other nodes', async () => {
    const upstream = { service_name: 'shop', discovery_type: 'stand_in' }
    const objects = { kinds: { routes: [{ id: '1', upstream }] }, same: true }
    await start(objects)
    await gateway.configured({ objects, discovery: { shop: [A, B] } })
    for (let n = 0; n < 4; n += 1) {
      const uid = `a${n}`
      await gateway.barrier.put({ ...pod, uid })
      const { tag } = await says({ places: 1, others: b }, uid)
      await gateway.configured({ objects, discovery: { shop: [A] } })
      expect(await seal(tag, uid)).to.include({ state: 'draining' })
      await says({ places: 1, sole: ['routes/1'] }, uid)
      await gateway.barrier.remove(uid)
      await gateway.configured({ objects, discovery: { shop: [A, B] } })
    }
  })

  it('distinguishes a Kubernetes discovery without a list yet from an empty one', async () => {
    const upstream = { service_name: 'shop/web:http', discovery_type: 'kubernetes' }
    const objects = { kinds: { routes: [{ id: '1', upstream }] }, same: true }
    await start(objects)
    await gateway.configured({ objects, discovery: { unready: [] } })
    await gateway.barrier.put(pod)
    await says({ places: 0, hidden: 1 })
    await gateway.configured({ objects, discovery: {} })
    await says({ places: 0, hidden: 0 })
    await gateway.configured({ objects, discovery: { 'shop/web:http': [A] } })
    await says({ places: 1, hidden: 0, sole: ['routes/1'] })
  })

  it('names the same other choices in every worker, however many there are', async () => {
    const nodes = Object.fromEntries(
      [map, ...Array.from({ length: 30 }, (_, i) => ({ [`10.0.1.${i}:80`]: 1 }))].flatMap(Object.entries)
    )
    await start({ kinds: { routes: [split({ upstream: { nodes } })] } })
    await gateway.barrier.put(pod)
    const word = await says({ places: 1, sole: [], cut: 0 })
    expect(word.others).to.have.length(1)
    expect(word.others[0]).to.include({ places: 1, more: 23 })
  })

  const named = { host: 'shop.example', port: 80, weight: 1 }

  it('is not delayed by a name whose DNS server is silent', async () => {
    const kinds = {
      routes: [
        { id: '1', upstream: { nodes: [A, B] } },
        { id: '2', upstream: { nodes: [named] } }
      ]
    }
    const silent = { kinds, names: { 'shop.example': false as const } }
    await start(silent)
    await gateway.barrier.put(pod)
    await says({ places: 1, hidden: 1, others: b })
    await gateway.configured({ objects: { kinds, names: { 'shop.example': [A.host] }, same: true } })
    await says({ places: 2, hidden: 0, sole: ['routes/2'], others: b })
    // requests in this worker still use the addresses that were resolved last, so the word does too
    await gateway.configured({ objects: { ...silent, same: true } })
    await gateway.barrier.put({ uid: 'b', ip: '10.0.0.9' })
    await says(NOTHING, 'b')
    await says({ places: 2, hidden: 0, sole: ['routes/2'], others: b })
  })

  it('is not void while a name in a silent zone changes all the time', async () => {
    const names = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`n${i}.silent`, false as const]))
    const renamed = (n: number) => ({
      routes: [
        { id: '1', upstream: { nodes: [A, B] } },
        { id: '2', upstream: { nodes: [{ ...named, host: `n${n}.silent` }] } }
      ]
    })
    await start({ kinds: renamed(0), names })
    await gateway.barrier.put(pod)
    let n = 0
    const renaming = setInterval(() => {
      n = (n + 1) % 60
      void gateway.configure({ objects: { kinds: renamed(n), names } })
    }, 300)
    try {
      await eventually('it is sealed', async () => {
        const { tag } = await wordOf()
        return tag !== undefined && (await seal(tag)).state === 'sealed'
      })
    } finally {
      clearInterval(renaming)
    }
    await says({ places: 1, hidden: 1, others: b })
  })

  const dns = (service_name: string) => ({ service_name, discovery_type: 'dns' })

  it('has the nodes of a discovery by DNS, and is not delayed if its server is silent (S2)', async () => {
    const routes = [
      { id: '1', upstream: { nodes: [A, B] } },
      { id: '2', upstream: dns('shop.example') },
      { id: '3', upstream: dns('other.silent') }
    ]
    const silent = { 'other.silent': false as const }
    await start({ kinds: { routes }, names: { ...silent, 'shop.example': [A.host] } })
    await gateway.barrier.put(pod)
    await says({ places: 2, hidden: 1, sole: ['routes/2'], others: b })
    await gateway.configured({
      objects: { kinds: { routes }, names: { ...silent, 'shop.example': [B.host] }, same: true }
    })
    await says({ places: 1, hidden: 1, sole: [], others: b })
  })

  it('hides only an object that it cannot read (S2)', async () => {
    const unreadable = { id: '2', plugins: { 'traffic-split': { rules: [5] } } } as never
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }, unreadable] } })
    await gateway.barrier.put(pod)
    await says({ places: 1, hidden: 1, others: b })
  })

  it('knows a name, however many other names have failed and are silent', async () => {
    const silent = Array.from({ length: 100 }, (_, i) => `n${i}.silent`)
    const failing = { id: '1', upstream: { nodes: silent.map(host => ({ ...named, host })) } }
    await start({ kinds: { routes: [failing] } })
    await gateway.barrier.put(pod)
    await says({ places: 0, hidden: 1 })
    const names = Object.fromEntries(silent.map(host => [host, false as const]))
    await gateway.configured({ objects: { kinds: { routes: [failing] }, names, same: true } })
    await eventually(
      '64 more look-ups have begun in a worker',
      async () => Number(await gateway.door('/resolved')) >= 164
    )
    const kinds = { routes: [failing, { id: '2', upstream: { nodes: [named] } }] }
    await gateway.configured({ objects: { kinds, names: { ...names, 'shop.example': [A.host] } } })
    await says({ places: 1, hidden: 1, sole: ['routes/2'] })
  })

  it('leaves out a name that does not resolve, but not the other nodes of its place', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [named, A] } }] } })
    await gateway.barrier.put(pod)
    await says({ places: 1, hidden: 1, sole: ['routes/1'], others: [] })
  })

  it('resolves a failing name less and less often', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [named] } }] } })
    const began = performance.now()
    await gateway.barrier.put(pod)
    await eventually(
      'it was asked for the third time',
      async () => Number(await gateway.door('/resolved')) >= 3
    )
    expect(performance.now() - began).to.be.at.least(2990)
    await says({ places: 0, hidden: 1 })
  })
})
