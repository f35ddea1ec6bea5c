import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { rollOut } from '../../sandbox/rollout.ts'
import { startWorld, type World, type WorldOptions } from '../../sandbox/world.ts'

// The sandbox itself, without an agent: the race must be there when nothing hides it, and a long enough sleep hides it.

describe('sandbox: a rolling update under load', function () {
  this.timeout(60_000)
  let world: World | undefined
  afterEach(() => world?.close())

  async function roll(differs: Partial<WorldOptions>) {
    world = await startWorld({ replicas: 3, gateways: 1, workers: 2, seed: 1, ...differs })
    const load = world.startLoad({ rate: 150, seed: 1, uploads: false, timeoutMs: 5000 })
    await wait(300)
    const { kubernetes, kubelet } = world
    const before = kubelet.records().length
    const ms = await rollOut({ store: kubernetes.store, kubelet, timeoutMs: 30_000 })
    await wait(300)
    return { ms, before, records: kubelet.records(), result: await load.stop() }
  }

  it('loses requests when pods end at once and the owner is late', async () => {
    const { records, before, result } = await roll({ ownerLag: { minMs: 1500, maxMs: 1500 } })
    expect(before).to.equal(3)
    expect(records.filter(({ goneAt }) => goneAt !== undefined)).to.have.length(3)
    expect(records.filter(({ goneAt }) => goneAt === undefined)).to.have.length(3)
    expect(result.failed).to.be.above(0)
    expect(result.requests).to.be.above(result.failed)
  })

  it('loses none when every pod sleeps longer than the owner takes', async () => {
    const { ms, records, result } = await roll({
      ownerLag: { minMs: 50, maxMs: 150 },
      preStop: () => ({ exec: { command: ['sleep', '2'] } })
    })
    expect(result.failed, JSON.stringify(result.failures)).to.equal(0)
    expect(ms).to.be.above(2000)
    const hooks = records.flatMap(record => record.hooks)
    expect(hooks).to.have.length(3)
    for (const { ok, startedAt, endedAt } of hooks) {
      expect(ok).to.equal(true)
      expect(endedAt - startedAt).to.be.within(2000, 4000)
    }
  })

  it('leaves nothing behind', async () => {
    world = await startWorld({ replicas: 2, gateways: 1, workers: 1, seed: 1 })
    const [gateway] = world.gateways.gateways
    const pids = world.kubelet.pids()
    expect(pids).to.have.length(2)
    await world.close()
    expect(world.kubelet.pids()).to.deep.equal([])
    const refused = await fetch(gateway!.proxy).catch(
      (error: Error) => (error.cause as NodeJS.ErrnoException).code
    )
    expect(refused).to.equal('ECONNREFUSED')
  })
})
