import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { percentile } from '../../sandbox/percentile.ts'
import { createRandom } from '../../sandbox/random.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { change, type Change } from './change.ts'
import { openHeap } from './heap.ts'
import { slope } from './slope.ts'

/**
 * `npm run test:soak -- --minutes M` updates, scales and deletes pods in the sandbox under load. `--seed` selects the changes.
 * It checks that no request fails, and that no hooks, open files, barrier entries or memory leak. The heap is measured after
 * full collections; RSS is only reported.
 */
const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, seed: { type: 'string', default: '1' } }
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  console.error('--minutes takes a number above 0')
  process.exit(2)
}
/** The longest pause between two changes. */
const PAUSE_MS = 5000
/** Changes between two measurements of the heap. */
const HEAP_EVERY = 20
/** The most growth from the second third of the measurements to the last third, in MB. Checked from `LOOKS` measurements on. */
const MORE_HELD_MB = 5
const LOOKS = 9
/** Entries outlive their pods by two minutes. */
const LINGER_MS = 125_000
const hook = (url: string) =>
  `timeout 24 curl -fsS --noproxy '*' --interface $POD_IP -X POST "${url}/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME" || sleep 5`

const statusOf = async (pid: number) => ({
  rssMb: Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
  files: (await readdir(`/proc/${pid}/fd`)).length
})

async function metric(world: World, name: string): Promise<number> {
  const text = await (await fetch(`${world.agentUrl}/metrics`)).text()
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)`, 'm').exec(text)?.[1])
}

async function entries(world: World): Promise<number> {
  const headers = { authorization: `Bearer ${world.barrierToken}` }
  const counts = world.gateways.gateways.map(async ({ barrier }) => {
    const answer = await fetch(`${barrier}/v1/barrier/state`, { headers })
    return ((await answer.json()) as { readonly entries: readonly unknown[] }).entries.length
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

async function soak(world: World): Promise<readonly string[]> {
  const agent = await world.startAgent()
  const load = world.startLoad({ rate: 100, seed: Number(values.seed), traffic: 'all', timeoutMs: 15_000 })
  const first = await statusOf(agent.pid)
  const rss: { readonly at: number; readonly mb: number }[] = []
  const inspected = await openHeap(agent.pid)
  const heap: { readonly at: number; readonly mb: number }[] = []
  // A full collection delays the agent, so the heap is not measured after each change.
  const look = async () => heap.push({ at: performance.now() / 60_000, mb: await inspected.used() })
  const began = performance.now()
  const end = began + minutes * 60_000
  const random = createRandom(Number(values.seed))
  const changes: Change[] = []
  while (performance.now() < end) {
    changes.push(await change(world, random))
    const { rssMb } = await statusOf(agent.pid)
    rss.push({ at: performance.now() / 60_000, mb: rssMb })
    if (changes.length % HEAP_EVERY === 0) await look()
    await wait(random() * PAUSE_MS)
  }
  const { requests, failed, failures } = await load.stop()
  await wait(LINGER_MS)
  const last = await statusOf(agent.pid)
  const left = { hooks: await metric(world, 'apisix_drain_hook_waiting'), entries: await entries(world) }
  const ended = world.kubelet.records().filter(({ goneAt }) => goneAt !== undefined).length
  const kinds = Object.entries(Object.groupBy(changes, kind => kind)).map(
    ([kind, same]) => `${same.length} x ${kind}`
  )
  console.log(`${kinds.join(', ')}: ${ended} pods ended, ${requests} requests, ${failed} failed`)
  for (const [what, same] of Map.groupBy(failures, f => `${f.request}: ${f.kind} ${f.status ?? f.detail}`))
    console.log(
      `  ${same.length} x ${what}, in minute ${[...new Set(same.map(({ at }) => minuteOf(at - began)))].join(', ')}`
    )
  await look()
  inspected.close()
  console.log(
    `heap after a full collection: ${heap.map(({ mb }) => mb.toFixed(1)).join(', ')} MB, slope of the last two thirds ${slopeOf(heap).toFixed(2)} MB/min`
  )
  console.log(
    `RSS ${first.rssMb.toFixed(0)} MB at first, ${last.rssMb.toFixed(0)} MB at the end, slope ${slopeOf(rss).toFixed(2)} MB/min`
  )
  console.log(
    `left: ${left.hooks} hooks, ${left.entries} entries; open files ${first.files} at first, ${last.files} at the end`
  )
  const third = Math.floor(heap.length / 3)
  const held = (looks: typeof heap) =>
    percentile(
      looks.map(({ mb }) => mb),
      0.5
    )
  const more = held(heap.slice(-third)) - held(heap.slice(third, -third))
  return [
    ...(heap.length >= LOOKS && more > MORE_HELD_MB
      ? [`${more.toFixed(1)} MB more are held at the end`]
      : []),
    ...(failed > 0 ? [`${failed} requests failed`] : []),
    ...(left.hooks === 0 ? [] : [`${left.hooks} hooks wait`]),
    ...(left.entries === 0 ? [] : [`${left.entries} entries are left`]),
    ...(last.files > first.files + SPARE_FILES ? [`${last.files - first.files} more files are open`] : [])
  ]
}

/** Returns the slope in MB a minute, without the first third, in which the heap still grows to its normal size. */
const slopeOf = (all: readonly { readonly at: number; readonly mb: number }[]): number =>
  slope(all.slice(Math.floor(all.length / 3)).map(({ at, mb }) => [at, mb]))

const minuteOf = (ms: number): number => Math.floor(ms / 60_000)

/** How many more files may be open at the end: connections that stay open for the next call. */
const SPARE_FILES = 20

const world = await startWorld({
  replicas: 6,
  gateways: 2,
  workers: 2,
  seed: Number(values.seed),
  evidence: 'barrier',
  preStop: agentUrl => ({ exec: { command: ['sh', '-c', hook(agentUrl)] } })
})
try {
  const problems = await soak(world)
  console.log(problems.length === 0 ? '1 passed, 0 failed' : `${problems.join('; ')}\n0 passed, 1 failed`)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  await world.close()
}
