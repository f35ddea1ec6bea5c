import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { send } from './client.ts'
import { Gateway, type Node, nginxVersion } from './gateway.ts'
import { costOfHeld, cpuOf } from './held.ts'

/**
 * The cost of the plugin for a request: the difference between gateways with and without it, in two measures:
 *
 * - worker CPU in microseconds, by wrk over loopback. All gateways run at once, with their workers on one processor, so
 *   other load on the machine affects all of them in the same way. LuaJIT's choices last as long as the process, and change
 *   the result by several per cent. So one process is one sample, and all gateways restart for the next sample. Two gateways
 *   without the plugin are the control: their difference is noise. On a busy machine, each gateway may get only some hundred
 *   requests a second. Then the plugin's timers also matter: about 2 ms of CPU a second in an idle worker.
 * - instructions in user space, by valgrind. Their number depends on LuaJIT's choices, but not on other load.
 *
 * It also measures how much CPU held entries cost a gateway, in microseconds for all its workers together.
 *
 * Usage: node test/plugin/cost.ts [starts of all gateways, 0 for none] [runs of valgrind, 0 for none] [calls for held entries, 0 for
 * none] [the folder plugin-config of another version]. With that folder, it only measures both versions side by side, with 0 and
 * 1,000 entries. The gateways' backend is a separate nginx, and the stand-in for APISIX does far less than APISIX.
 * Compare the difference (median of the samples, and their middle half) with the 24 us that a request costs a real
 * APISIX on the same machine without other load.
 */
const [STARTS = 20, RUNS = 3, CALLS = 200] = process.argv.slice(2, 5).map(Number)
const OTHER = process.argv[5]
const WARM_REQUESTS = 20_000
const SECONDS = 4
const APISIX_US = 24
const REQUESTS = 4000
const ALL = [
  'without',
  'without too',
  '0 entries',
  '10 entries',
  '1000 entries',
  '1000 with 16 successors',
  'other: 0 entries',
  'other: 1000 with 16 successors'
] as const
type Case = (typeof ALL)[number]
/** The cases of this run: those that compare two versions of the plugin, or those of one version. */
const CASES: readonly Case[] = OTHER
  ? [
      'without',
      'without too',
      '0 entries',
      'other: 0 entries',
      ...ALL.filter(name => name.endsWith('successors'))
    ]
  : ALL.slice(0, 6)

const ENTRIES: Partial<Record<Case, number>> = {
  '10 entries': 10,
  '1000 entries': 1000,
  '1000 with 16 successors': 1000,
  'other: 1000 with 16 successors': 1000
}

/** The value below which `share` of the values lie. */
const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((x, y) => x - y)[Math.floor(values.length * share)] ?? Number.NaN

const median = (values: readonly number[]): number => quantile(values, 0.5)

const figures = () => Object.fromEntries(ALL.map(name => [name, []])) as unknown as Record<Case, number[]>

/** Sixteen addresses that no other entry names. */
const successors = (entry: number): string[] =>
  Array.from({ length: 16 }, (_, i) => `10.${128 + (entry >> 8)}.${entry & 255}.${i}:80`)

async function start(name: Case, node: Node, under: readonly string[] = []): Promise<Gateway> {
  const isOther = OTHER !== undefined && name.startsWith('other')
  const gateway = await Gateway.start({
    workers: 1,
    load: name.startsWith('without') ? 'none' : 'hook',
    under,
    ...(isOther && { plugin: `${resolve(OTHER)}/` })
  })
  await gateway.configure({ u: { nodes: [node, node, node] } })
  const entries = Array.from({ length: ENTRIES[name] ?? 0 }, (_, i) => ({
    uid: `u-${i}`,
    ip: `10.${i >> 8}.0.${i & 255}`,
    ttl: 3600,
    ...(name.endsWith('successors') && { successors: { 80: successors(i) } })
  }))
  if (entries.length > 0) await gateway.barrier.put(...entries)
  return gateway
}

/** Loads all gateways at once. Returns for each gateway the number of requests, and the worker's CPU per request in microseconds. */
async function load(
  gateways: readonly Gateway[],
  seconds: number
): Promise<{ requests: number; us: number }[]> {
  const used = () => gateways.map(gateway => cpuOf(gateway.workers()[0] ?? 0))
  const before = used()
  const said = await Promise.all(
    gateways.map(({ url }) => promisify(execFile)('wrk', ['-t1', '-c16', `-d${seconds}s`, `${url}/u`]))
  )
  return used().map((after, i) => {
    const text = said[i]?.stdout ?? ''
    const requests = Number(/(\d+) requests in/.exec(text)?.[1])
    if (/Non-2xx/.test(text) || !(requests > 0)) throw new Error(text)
    return { requests, us: (after - (before[i] ?? 0)) / requests / 1000 }
  })
}

async function byClock(node: Node): Promise<Record<Case, number[]>> {
  const measured = figures()
  for (let round = 0; round < STARTS; round += 1) {
    const gateways: Gateway[] = []
    try {
      // every second round starts the gateways in reverse order, so that the order does not look like a cost
      const order = round % 2 === 0 ? CASES : CASES.toReversed()
      for (const name of order) gateways.push(await start(name, node))
      if (availableParallelism() > 1)
        for (const gateway of gateways)
          execFileSync('taskset', ['-cp', '0', String(gateway.workers()[0])], { stdio: 'ignore' })
      // sends requests until LuaJIT has compiled all code, in the slowest gateway too
      for (let fewest = 0; fewest < WARM_REQUESTS;)
        fewest += Math.min(...(await load(gateways, 1)).map(({ requests }) => requests))
      const loaded = await load(gateways, SECONDS)
      for (const [i, name] of order.entries()) measured[name].push(loaded[i]?.us ?? Number.NaN)
    } finally {
      for (const gateway of gateways) await gateway.stop()
    }
  }
  return measured
}

/** Returns how many instructions a worker executes from its start to its end, with `n` requests. */
async function total(name: Case, node: Node, n: number): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'apisix-drain-cost-'))
  try {
    const under = ['valgrind', '--quiet', '--tool=callgrind', `--callgrind-out-file=${dir}/%p`]
    const gateway = await start(name, node, under)
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const client = async () => {
      for (let i = 0; i < n / 8; i += 1) await send(`${gateway.url}/u`, { agent })
    }
    await Promise.all(Array.from({ length: 8 }, client))
    agent.destroy()
    await gateway.stop()
    const files = readdirSync(dir).map(file => readFileSync(join(dir, file), 'utf8'))
    return Math.max(...files.map(text => Number(/^(?:totals|summary): (\d+)/m.exec(text)?.[1] ?? 0)))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function byInstructions(node: Node): Promise<Record<Case, number[]>> {
  const measured = figures()
  for (let run = 0; run < RUNS; run += 1) {
    for (const name of CASES) {
      // both runs include the start and LuaJIT's warm-up, so their difference is the cost of the requests alone
      const few = await total(name, node, REQUESTS)
      measured[name].push(((await total(name, node, 2 * REQUESTS)) - few) / REQUESTS)
    }
  }
  return measured
}

/** Compares each gateway with those without the plugin in the same round, because the machine's speed changes between rounds. */
function told(unit: string, measured: Record<Case, number[]>): object[] {
  return CASES.map(name => {
    const over = measured[name].map((value, round) => {
      const [one = Number.NaN, other = Number.NaN] = [measured.without[round], measured['without too'][round]]
      // compares the second control with the first, and every other gateway with the mean of both controls
      return value - (name === 'without too' ? one : (one + other) / 2)
    })
    return {
      case: name,
      [unit]: Number(median(measured[name]).toFixed(2)),
      over: Number(median(over).toFixed(2)),
      'middle half': [0.25, 0.75].map(share => quantile(over, share).toFixed(2)).join(' to ')
    }
  })
}

/** Returns the differences between the two versions of the plugin in the same round. */
function compared(unit: string, measured: Record<Case, number[]>): object[] {
  return (['0 entries', '1000 with 16 successors'] as const).map(name => {
    const other = measured[`other: ${name}`]
    const more = measured[name].map((value, round) => value - (other[round] ?? Number.NaN))
    return {
      case: name,
      [`${unit} more than the other version`]: Number(median(more).toFixed(2)),
      'middle half': [0.25, 0.75].map(share => quantile(more, share).toFixed(2)).join(' to ')
    }
  })
}

/** Measures held entries. With 3,000 entries, two agents send 8 summaries a second (four each) and 150 renewals (both, every 40 s). */
async function held(): Promise<void> {
  const rows: object[] = []
  for (const workers of [1, 8]) {
    for (const entries of [0, 1000, 3000]) {
      const cost = await costOfHeld(entries, CALLS, workers)
      const second = 8 * cost.summary + (2 * entries * cost.renewal) / 40
      const rounded = Object.entries(cost).map(([what, us]) => [what, Number(us.toFixed(1))])
      rows.push({
        workers,
        entries,
        ...Object.fromEntries(rounded),
        '% of one worker': (second / 1e4).toFixed(2)
      })
    }
  }
  console.table(rows)
}

async function main(): Promise<void> {
  if (CALLS > 0) await held()
  if (STARTS === 0 && RUNS === 0) return
  const server = 'location = /u { return 200 "ok"; }'
  const origin = await Gateway.start({ workers: 1, load: 'none', server })
  try {
    const [host = '', port = ''] = origin.at.gateway.split(':')
    const node = { host, port: Number(port) }
    console.log(`${nginxVersion()}; 3 % of ${APISIX_US} us are ${(APISIX_US * 0.03).toFixed(1)} us`)
    const clock = STARTS > 0 ? await byClock(node) : undefined
    if (clock) console.table(told('cpuUs', clock))
    if (clock && OTHER) console.table(compared('cpuUs', clock))
    console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}`)
    const instructions = RUNS > 0 ? await byInstructions(node) : undefined
    if (instructions) console.table(told('instructions', instructions))
    if (instructions && OTHER) console.table(compared('instructions', instructions))
    console.log(JSON.stringify({ starts: STARTS, seconds: SECONDS, clock, runs: RUNS, instructions }))
  } finally {
    await origin.stop()
  }
}

await main()
