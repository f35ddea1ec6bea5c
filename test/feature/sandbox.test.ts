import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { hookOf, runArm, type Arm } from '../../sandbox/arms.ts'
import type { ArmName, RunOptions } from '../../sandbox/cli.ts'
import type { AccessFact } from '../../sandbox/apisix/access-log.ts'
import type { PodRecord } from '../../sandbox/kubelet/record.ts'
import type { LoadResult } from '../../sandbox/load/options.ts'
import { heldLines } from '../../sandbox/run.ts'
import { jsonReport } from '../../sandbox/report.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { startWorld, type World, type WorldOptions } from '../../sandbox/world.ts'

// The sandbox without an agent. Without a sleep it must lose requests; with a long enough sleep it must lose none.

describe('sandbox: a rolling update under load', () => {
  let world: World | undefined
  afterEach(() => world?.close())

  async function roll(differs: Partial<WorldOptions>) {
    world = await startWorld({ replicas: 3, gateways: 1, workers: 2, seed: 1, ...differs })
    const load = world.startLoad({ rate: 100, seed: 1, traffic: 'no-uploads', timeoutMs: 15_000 })
    await wait(300)
    const { kubernetes, kubelet } = world
    const ms = await rollOut({ store: kubernetes.store, kubelet })
    await wait(300)
    return { ms, records: kubelet.records(), result: await load.stop() }
  }

  it('loses requests when pods end at once and the owner is late', async () => {
    const { records, result } = await roll({ ownerLag: { minMs: 10_000, maxMs: 10_000 } })
    expect(records.filter(({ goneAt }) => goneAt !== undefined)).to.have.length(3)
    expect(records.filter(({ goneAt }) => goneAt === undefined)).to.have.length(3)
    expect(result.failed).to.be.above(0)
    expect(result.requests).to.be.above(result.failed)
  })

  it('loses none when containers restart one after the other, although no probe shows when they serve again', async () => {
    world = await startWorld({
      replicas: 3,
      gateways: 2,
      workers: 2,
      seed: 1,
      evidence: 'barrier',
      preStop: hookOf('apisix-drain')
    })
    await world.startAgent()
    const load = world.startLoad({ rate: 100, seed: 1, traffic: 'all', timeoutMs: 15_000 })
    await wait(300)
    const records = world.kubelet.records()
    for (const { uid } of [...records, records[0]!]) {
      await world.kubelet.restart(uid)
      await wait(500)
    }
    const result = await load.stop()
    expect(result.failed, JSON.stringify(result.failures)).to.equal(0)
    const hooks = records.flatMap(record => record.hooks)
    for (const { ok, output } of hooks) expect(ok && JSON.parse(output)).to.include({ evidence: 'barrier' })
    expect(records.map(({ restarts }) => restarts)).to.deep.equal([2, 1, 1])
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

// A smaller run of `npm run sandbox`. It compares times only within this run, and with wide bounds, as the machine may be busy.

describe('sandbox: the arms', () => {
  const open: { readonly world: { close(): Promise<unknown> } }[] = []
  afterEach(() => Promise.all(open.splice(0).map(arm => arm.world.close())))

  const options: RunOptions = {
    arms: [],
    replicas: 3,
    gateways: 2,
    workers: 2,
    rate: 150,
    traffic: 'all',
    mode: 'etcd-1.8',
    evidence: 'barrier',
    keepLogs: undefined,
    seed: 1,
    json: true,
    lateMs: undefined,
    hold: false
  }
  async function run(name: ArmName, differs: Partial<RunOptions> = {}) {
    const arm = await runArm(name, { ...options, ...differs }, () => {}, new AbortController().signal)
    open.push(arm)
    return arm
  }
  const why = ({ detail, world }: Arm) =>
    JSON.stringify({ failures: detail.load.failures, answers: detail.answers, writes: world.owner.writes })

  it('apisix-drain loses nothing, slow uploads included, every hook is answered with a proof, and files explain the run', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-test-'))
    open.push({ world: { close: () => rm(directory, { recursive: true }) } })
    const arm = await run('apisix-drain', { keepLogs: directory })
    const { detail } = arm
    expect(detail.failed, why(arm)).to.equal(0)
    expect(detail.load.byRequest.upload.requests).to.be.above(0)
    expect(detail.answers, why(arm)).to.deep.equal({ 'drained (barrier)': 3 })
    expect(detail.hooks).to.deep.equal({ run: 3, failed: 0 })
    // No request came after the answer of a hook.
    expect(detail.late).to.equal(0)
    expect(jsonReport([detail]).arms[0]).to.have.all.keys('name', 'requests', 'failed', 'hookMs', 'rolloutMs')
    const read = (file: string) => readFile(join(directory, 'apisix-drain', file), 'utf8')
    expect(await read('agent.log')).to.contain('hook answered')
    const requests = (await read('access.log')).trim().split('\n')
    expect(requests.some(line => (JSON.parse(line) as AccessFact).status === 200)).to.equal(true)
    const facts = JSON.parse(await read('facts.json')) as { pods: PodRecord[]; load: LoadResult }
    expect(facts.pods).to.have.length(6)
    expect(facts.load.failed, JSON.stringify(facts.load.failures)).to.equal(0)
  })

  it('--ports: at ports of one address, and doctor and status of what to try work', async () => {
    const arm = await run('apisix-drain', { ports: true, gateways: 1, rate: 80 })
    const { detail } = arm
    expect(detail.failed, why(arm)).to.equal(0)
    expect(detail.answers, why(arm)).to.deep.equal({ 'drained (barrier)': 3 })
    expect(detail.late).to.equal(0)
    expect(arm.world.kubelet.records().every(({ ip }) => ip.startsWith('10.250.'))).to.equal(true)
    for (const [what, says] of [
      ['doctor', /ok {4}barrier: apisix\/apisix-0: fit[^]* 0 failed: the agent can work here/],
      ['status', /shop\/web-\S+ +200 +drained +barrier/]
    ] as const) {
      const command = heldLines(arm).find(line => line.includes(`main.ts ${what} `)) ?? ''
      const { stdout } = await promisify(execFile)('sh', ['-c', command])
      expect(stdout).to.match(says)
    }
  })

  /** Expects that the pods of two generations are gone, and that the upstream lists no living pod. */
  const listsOnlyGhosts = async ({ world }: Arm) => {
    const { url, key } = world.gateways.admin
    const response = await fetch(`${url}/apisix/admin/upstreams`, { headers: { 'X-API-KEY': key } })
    const { list } = (await response.json()) as {
      list: readonly { value: { nodes: readonly { host: string }[] } }[]
    }
    const living = world.kubelet.records().filter(({ goneAt }) => goneAt === undefined)
    expect(living).to.have.length(3)
    expect(world.kubelet.records()).to.have.length(9)
    const listed = list.flatMap(({ value }) => value.nodes.map(({ host }) => host))
    expect(listed).to.not.be.empty
    expect(listed).to.not.include.oneOf(living.map(({ ip }) => ip))
  }

  it('dead-apisix-drain loses nothing: two generations end, and requests live on their successors', async () => {
    const arm = await run('dead-apisix-drain')
    const { detail } = arm
    await listsOnlyGhosts(arm)
    expect(detail.failed, why(arm)).to.equal(0)
    expect(detail.load.byRequest.upload.requests).to.be.above(0)
    expect(detail.answers, why(arm)).to.deep.equal({ 'drained (barrier)': 6 })
    expect(detail.hooks).to.deep.equal({ run: 6, failed: 0 })
    expect(detail.late).to.equal(0)
  })

  it('--late: an ingress controller that syncs seconds late, from the state of the start of its sync', async () => {
    const arm = await run('apisix-drain', { lateMs: 4000, mode: 'etcd-2.x' })
    const { detail, world } = arm
    expect(detail.failed, why(arm)).to.equal(0)
    expect(detail.answers, why(arm)).to.deep.equal({ 'drained (barrier)': 3 })
    const { acceptedAt = 0, eventAt } = world.owner.writes.at(-1)!
    expect(acceptedAt - eventAt, 'late').to.be.at.least(4000)
    expect(world.hasOwnerCaughtUp(), 'in the end').to.equal(true)
  })
})
