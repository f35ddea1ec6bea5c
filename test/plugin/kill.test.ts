import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { startGateway } from '../../sandbox/apisix/gateway.ts'
import { createStore, keyOf } from '../../sandbox/apisix/store.ts'
import { Backend } from './backend.ts'
import { Gateway, type Upstream } from './gateway.ts'
import { Load } from './load.ts'
import { withAgent, type LivePod, type WithAgent } from './with-agent.ts'

/** `ROUNDS=100` runs the long version. */
const ROUNDS = Number(process.env.ROUNDS ?? 30)
/** `GATEWAY=vm`: the plugin runs in a gateway of the sandbox, without nginx. */
const start = process.env.GATEWAY === 'vm' ? startVm : () => Gateway.start({ workers: 4 })

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
  const configure = async ({ u }: { readonly u?: Upstream }) => {
    const nodes = (u?.nodes ?? []).map(({ host, port }) => ({ host, port, weight: 1 }))
    store.put(keyOf('upstreams', 'u'), { id: 'u', type: 'roundrobin', nodes })
  }
  return {
    url: gateway.urls.proxy,
    at: { barrier: new URL(gateway.urls.barrier ?? '').host, token: 'token' },
    configure,
    configured: configure,
    stop: () => gateway.close()
  }
}

describe('Kill test: GETs, 0-80 ms GETs and POSTs, and 60 ms uploads while backends are killed', () => {
  let gateway: Awaited<ReturnType<typeof start>>
  let world: WithAgent

  before(async () => {
    gateway = await start()
    world = await withAgent(gateway)
  })
  after(async () => {
    await world?.close()
    await gateway?.stop()
  })

  /** Replaces one of two pods under load, `most` times or until that many rounds failed. `end` runs before the SIGKILL. */
  async function roll(
    end: (pod: LivePod, left: readonly LivePod[]) => Promise<void>,
    { most = ROUNDS, fail = Infinity } = {}
  ) {
    const pod = async () => await world.pod(await Backend.start())
    let pods = [await pod(), await pod()]
    await world.route(pods)
    const load = new Load(`${gateway.url}/u`)
    const acks: number[] = []
    let [round, rounds] = [0, 0]
    try {
      for (; round < most && rounds < fail; round += 1) {
        const fresh = await pod()
        const [old, ...rest] = pods as [LivePod, ...LivePod[]]
        pods = [...rest, fresh]
        await world.route([old, ...pods])
        const failedBefore = load.tally.failed.length
        await load.goesOn()
        const began = performance.now()
        await end(old, pods)
        acks.push(performance.now() - began)
        await old.backend.kill()
        world.gone(old)
        await load.goesOn()
        await world.route(pods)
        if (load.tally.failed.length > failedBefore) rounds += 1
      }
    } finally {
      await load.stop()
      for (const { backend } of pods) await backend.kill()
    }
    const { sent, failed } = load.tally
    acks.sort((x, y) => x - y)
    console.log(
      `      ${sent} requests, ${failed.length} failed in ${rounds} of ${round} rounds, ` +
        `hook p50 ${acks[acks.length >> 1]?.toFixed(0)} ms, max ${acks.at(-1)?.toFixed(0)} ms`
    )
    return { sent, failed, rounds }
  }

  it(`with hooks, and no change of the gateway's configuration: 0 failed in ${ROUNDS} rounds`, async () => {
    const { sent, failed } = await roll(async pod => {
      const { status, body } = await world.end(pod)
      expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
    })
    expect(sent).to.be.above(ROUNDS * 60)
    expect(failed).to.deep.equal([])
  }).timeout(300_000)

  it('with the node removed from the configuration, and 50 ms of patience: requests fail', async () => {
    const naive = async (_: LivePod, left: readonly LivePod[]) => {
      await gateway.configure({ u: { nodes: left.map(({ backend }) => backend.node) } })
      await wait(50)
    }
    // One round in four fails, so this ends after a few.
    const { failed } = await roll(naive, { most: 300, fail: 1 })
    expect(failed).to.not.deep.equal([])
  }).timeout(300_000)
})
