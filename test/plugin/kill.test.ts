import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { startGateway } from '../../sandbox/apisix/gateway.ts'
import { createStore, keyOf } from '../../sandbox/apisix/store.ts'
import { Backend } from './backend.ts'
import { Barrier } from './barrier.ts'
import { Gateway, type Node } from './gateway.ts'
import { Load } from './load.ts'

/** `ROUNDS=100` runs the long version. */
const ROUNDS = Number(process.env.ROUNDS ?? 30)
/** `GATEWAY=vm`: the plugin runs in a gateway of the sandbox, without nginx. */
const start = process.env.GATEWAY === 'vm' ? startVm : () => Gateway.start({ workers: 4 })

type Configuration = Readonly<Record<'u', { readonly nodes: readonly Node[] }>>

async function startVm() {
  const store = createStore()
  const gateway = await startGateway({
    store,
    name: 'vm',
    host: '127.0.0.1',
    proxyPort: 0,
    controlPort: 0,
    barrierPort: 0,
    workers: 4,
    adminKey: 'none',
    barrierToken: 'token',
    applyDelay: () => 0
  })
  store.put(keyOf('routes', 'u'), { id: 'u', uris: ['/u', '/u/*'], upstream_id: 'u' })
  const configure = async ({ u }: Configuration) => {
    const nodes = u.nodes.map(node => ({ ...node, weight: 1 }))
    store.put(keyOf('upstreams', 'u'), { id: 'u', type: 'roundrobin', nodes })
  }
  const barrier = new Barrier(gateway.urls.barrier ?? '', 'token')
  return { url: gateway.urls.proxy, barrier, configure, configured: configure, stop: () => gateway.close() }
}

describe('Kill test: GETs, 0-80 ms GETs and POSTs, and 60 ms uploads while backends are killed', () => {
  let gateway: Awaited<ReturnType<typeof start>>

  before(async () => {
    gateway = await start()
  })
  after(async () => await gateway?.stop())

  /** Replaces one of two pods under load, `ROUNDS` times. `end` runs before the SIGKILL. */
  async function roll(end: (pod: Backend, left: readonly Backend[]) => Promise<void>) {
    let pods = [await Backend.start(), await Backend.start()]
    await gateway.configured({ u: { nodes: pods.map(p => p.node) } })
    const load = new Load(`${gateway.url}/u`)
    const acks: number[] = []
    let rounds = 0
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        const fresh = await Backend.start()
        const [old, ...rest] = pods as [Backend, ...Backend[]]
        pods = [...rest, fresh]
        await gateway.configured({ u: { nodes: [old, ...pods].map(p => p.node) } })
        const failedBefore = load.tally.failed.length
        await wait(60)
        const began = performance.now()
        await end(old, pods)
        acks.push(performance.now() - began)
        await old.kill()
        await wait(60)
        await gateway.configured({ u: { nodes: pods.map(p => p.node) } })
        await gateway.barrier.remove(old.uid)
        if (load.tally.failed.length > failedBefore) rounds += 1
      }
    } finally {
      await load.stop()
      for (const pod of pods) await pod.kill()
    }
    const { sent, failed } = load.tally
    acks.sort((x, y) => x - y)
    console.log(
      `      ${sent} requests, ${failed.length} failed in ${rounds} of ${ROUNDS} rounds, ` +
        `ack p50 ${acks[acks.length >> 1]?.toFixed(0)} ms, max ${acks.at(-1)?.toFixed(0)} ms`
    )
    return { sent, failed, rounds }
  }

  it(`with the barrier, and no change of the configuration: 0 failed in ${ROUNDS} rounds`, async () => {
    const { barrier } = gateway
    const { sent, failed } = await roll(async pod => {
      await barrier.put(pod.entry())
      for (;;) {
        const [told] = (await barrier.inflight([pod.uid], 10)).entries
        if (told && told.inflight.requests + told.inflight.long === 0) break
      }
      let [told] = (await barrier.put(pod.sealed)).entries
      while (told && told.inflight.requests + told.inflight.long > 0) {
        ;[told] = (await barrier.inflight([pod.uid], 10)).entries
      }
    })
    expect(sent).to.be.above(2000)
    expect(failed).to.deep.equal([])
  }).timeout(300_000)

  it('with the node removed from the configuration, and 50 ms of patience: requests fail', async () => {
    const { failed, rounds } = await roll(async (_pod, left) => {
      await gateway.configure({ u: { nodes: left.map(p => p.node) } })
      await wait(50)
    })
    expect(failed.length).to.be.above(0)
    expect(rounds).to.be.above(0)
  }).timeout(300_000)
})
