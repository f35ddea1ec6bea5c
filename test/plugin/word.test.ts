import { expect } from 'chai'
import type { Word } from './barrier.ts'
import { eventually } from './eventually.ts'
import { Gateway, type Kinds, type Objects } from './gateway.ts'

const A = { host: '10.0.0.1', port: 80, weight: 1 }
const B = { host: '10.0.0.2', port: 80, weight: 1 }
const pod = { uid: 'a', ip: A.host }
const b = { ip: B.host, port: 80 }
/** As traffic-split keeps it: a map of address to weight. */
const map = { '10.0.0.1:80': 1, '10.0.0.2:80': 1 }
const split = (choice: object) => ({
  id: '1',
  plugins: { 'traffic-split': { rules: [{ weighted_upstreams: [{ weight: 1 }, choice] }] } }
})
const route = { id: '1', upstream_id: 'u' }
const WITHOUT: Word = { said: 3, asked: 3, places: 0, sole: 0, hidden: 0, others: [] }

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

  /** The word that is so in the end. */
  const says = async (part: Partial<Word>, uid = 'a') => {
    let last: Word | undefined
    await eventually(`the word is ${JSON.stringify(part)}`, async () => {
      last = await wordOf(uid)
      expect(last, JSON.stringify(last)).to.deep.include({ said: 3, ...part })
      return true
    })
    return last!
  }

  const PLACES: Record<string, Kinds> = {
    'an upstream of a route': { upstreams: [{ id: 'u', nodes: [A, B] }], routes: [route] },
    'an upstream of a service': { upstreams: [{ id: 'u', nodes: [A, B] }], services: [route] },
    'an upstream within a route': { routes: [{ id: '1', upstream: { nodes: [A, B] } }] },
    'an upstream within a service': { services: [{ id: '1', upstream: { nodes: map } }] },
    'an upstream of a split': {
      upstreams: [{ id: 'u', nodes: [A, B] }],
      routes: [split({ upstream_id: 'u' })]
    },
    'a split in a route': { routes: [split({ upstream: { nodes: map } })] },
    'a split in a service': { services: [split({ upstream: { nodes: [A, B] } })] },
    'a split in a plugin config': { plugin_configs: [split({ upstream: { nodes: map } })] },
    'a split in a global rule': { global_rules: [split({ upstream: { nodes: map } })] },
    'a split in a consumer': { consumers: [split({ upstream: { nodes: map } })] },
    'a split in a consumer group': { consumer_groups: [split({ upstream: { nodes: map } })] }
  }

  it('is not made before an agent asks for it', async () => {
    await start({ kinds: { upstreams: [{ id: 'u', nodes: [A, B] }], routes: [route] } })
    gateway.barrier.words = false
    expect((await gateway.barrier.put(pod)).entries[0]).not.to.have.property('word')
    expect(await wordOf()).to.equal(undefined)
    gateway.barrier.words = true
    await gateway.barrier.put(pod)
    await says({ places: 1, sole: 0 })
  })

  it('names every kind of place', async () => {
    await start({ kinds: { routes: [] } })
    await gateway.barrier.put(pod)
    for (const [name, kinds] of Object.entries(PLACES)) {
      const all = { upstreams: [], routes: [], services: [], plugin_configs: [], global_rules: [] }
      await gateway.configured({
        objects: { kinds: { ...all, consumers: [], consumer_groups: [], ...kinds } }
      })
      const word = await says({ places: 1 })
      expect(word, name).to.deep.equal({ ...WITHOUT, places: 1, others: [b] })
    }
  })

  it('counts an upstream that nothing refers to as no place', async () => {
    await start({ kinds: { upstreams: [{ id: 'u', nodes: [A] }], routes: [] } })
    await gateway.barrier.put(pod)
    await says(WITHOUT)
    await gateway.configured({
      objects: { kinds: { upstreams: [{ id: 'u', nodes: [A] }], routes: [route] } }
    })
    await says({ places: 1, sole: 1 })
    await gateway.configured({ objects: { kinds: { upstreams: [{ id: 'u', nodes: [A] }], routes: [] } } })
    await says(WITHOUT)
  })

  it('calls a place sole when all of its nodes are denied, and each port is a node of its own', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put({ ...pod, port: 80 }, { uid: 'b', ip: B.host, port: 81 })
    await says({ places: 1, sole: 0, others: [b] })
    await says(WITHOUT, 'b')
    await gateway.barrier.put({ uid: 'c', ip: B.host })
    await says({ places: 1, sole: 1, others: [] })
    await says({ places: 1, sole: 1 }, 'c')
    await gateway.barrier.remove('c')
    await says({ places: 1, sole: 0, others: [b] })
  })

  it('names the port that the scheme stands for, and some of many others', async () => {
    const many = [1, 2, 3, 4, 5, 6, 7].map(n => ({ host: `10.0.1.${n}`, weight: 1 }))
    const upstream = { scheme: 'https', nodes: [{ host: A.host, weight: 1 }, ...many] }
    await start({ kinds: { routes: [{ id: '1', upstream }] } })
    await gateway.barrier.put({ ...pod, port: 443 })
    const word = await says({ places: 1, sole: 0 })
    expect(word.others).to.have.length(4)
    expect(word.others[0]).to.deep.equal({ ip: '10.0.1.1', port: 443 })
  })

  it('is asked of each worker, whose places differ', async () => {
    const routes = [{ id: '1', upstream: { nodes: [A, B] } }]
    await start({ kinds: { routes }, worker: { 1: { routes: [{ id: '1', upstream: { nodes: [A] } }] } } })
    await gateway.barrier.put(pod)
    await says({ places: 1, sole: 1, others: [b] })
  })

  it('comes with the answer to the put, also after a reload', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    const told = async () => {
      let n = 0
      // each put is a generation of its own; a busy machine may need more than the few milliseconds
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

  it('comes by a timer where nobody can be woken', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } }, { load: 'plugin' })
    await gateway.barrier.put(pod)
    await says({ places: 1, sole: 0, others: [b] })
  })

  for (const standalone of [false, true]) {
    it(`is void in the step that changes the configuration, ${standalone ? 'standalone' : 'etcd'}`, async () => {
      const kinds = (n: number) => ({
        routes: [{ id: '1', name: `${n}`, upstream: { nodes: n % 2 ? [A] : [A, B] } }]
      })
      await start({ kinds: kinds(0), standalone })
      await gateway.barrier.put(pod)
      for (let n = 1; n <= 10; n++) {
        await says({ places: 1, sole: (n - 1) % 2 })
        await gateway.configure({ objects: { kinds: kinds(n), standalone } })
      }
      await says({ places: 1, sole: 0 })
      expect(await gateway.door('/stale')).to.equal('0\n')
    })

    it(`knows what was removed, ${standalone ? 'standalone' : 'etcd'}`, async () => {
      const routes = [1, 2, 3].map(id => ({ id: `${id}`, upstream: { nodes: [A, B] } }))
      await start({ kinds: { routes }, standalone })
      await gateway.barrier.put(pod)
      await says({ places: 3 })
      await gateway.configured({ objects: { kinds: { routes: routes.slice(1) }, standalone } })
      await says({ places: 2 })
    })
  }

  it('is not given while the configuration is read anew', async () => {
    const kinds = { routes: [{ id: '1', upstream: { nodes: [A] } }] }
    await start({ kinds, reload: { routes: true } })
    await gateway.barrier.put(pod)
    await gateway.lookedAgain()
    expect(await wordOf()).to.deep.include({ said: 0, asked: 3 })
    await gateway.configured({ objects: { kinds } })
    await says({ places: 1, sole: 1 })
  })

  it('is missing from a worker that is frozen, and no other speaks for it', async () => {
    await start({ kinds: { routes: [{ id: '1', upstream: { nodes: [A, B] } }] } })
    await gateway.barrier.put(pod)
    await says({ places: 1 })
    // a connection that the frozen one takes is never answered: those after it come through
    const frozen = gateway.workers()[0]!
    process.kill(frozen, 'SIGSTOP')
    try {
      const looks = async () =>
        await Promise.any(
          Array.from({ length: 8 }, async () => {
            const answer = await gateway.barrier.put({ uid: 'b', ip: B.host })
            const { word } = answer.entries[0]!
            if (word.said < 2) throw new Error('not yet')
            return word
          })
        )
      await eventually('the others have spoken', async () => {
        expect(await looks()).to.deep.include({ said: 2, asked: 3, sole: 1 })
        return true
      })
    } finally {
      process.kill(frozen, 'SIGCONT')
    }
    await says({ places: 1, sole: 1 }, 'b')
  })

  it('looks at service discovery as it is now', async () => {
    const upstream = { service_name: 'shop', discovery_type: 'stand_in' }
    const objects = { kinds: { routes: [{ id: '1', upstream }] }, same: true }
    await start(objects)
    await gateway.barrier.put(pod)
    await says(WITHOUT)
    await gateway.configured({ objects, discovery: { shop: [A] } })
    await says({ places: 1, sole: 1 })
    await gateway.configured({ objects, discovery: { shop: [A, B] } })
    await says({ places: 1, sole: 0, others: [b] })
  })

  it('looks at all records of a name, and says where it cannot', async () => {
    const nodes = [{ host: 'shop.example', port: 80, weight: 1 }]
    const kinds = { routes: [{ id: '1', upstream: { nodes } }] }
    await start({ kinds })
    await gateway.barrier.put(pod)
    await says({ places: 0, hidden: 1 })
    await gateway.configured({ objects: { kinds, names: { 'shop.example': [B.host, A.host] }, same: true } })
    await says({ places: 1, sole: 0, hidden: 0, others: [b] })
  })
})
