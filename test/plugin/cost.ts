import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { send } from './client.ts'
import { Gateway, type Node, nginxVersion } from './gateway.ts'

/**
 * What the plugin costs a request, with and without it, in two measures:
 *
 * - worker CPU in microseconds, by wrk over loopback, interleaved so that a slow moment of the machine hits all alike;
 * - instructions in user space, by valgrind, which a busy machine does not change (only what LuaJIT chooses to compile
 *   differs from run to run).
 *
 * Usage: node test/plugin/cost.ts [rounds of wrk, 0 for none] [runs of valgrind, 0 for none]. The gateway answers
 * through an nginx that does nothing else, and the stand-in for APISIX does far less than APISIX: look at the
 * difference (median of the pairs, and their middle half), and hold it against the 24 us that a request costs a real
 * APISIX on the same machine when it is quiet. `dictionary` is the plugin loaded the way that counts there.
 */
const [ROUNDS = 10, RUNS = 3] = process.argv.slice(2).map(Number)
const SECONDS = 2
const APISIX_US = 24
const REQUESTS = 4000
const CASES = ['without', '0 entries', '10 entries', '1000 entries', 'dictionary'] as const
type Case = (typeof CASES)[number]

const ENTRIES: Partial<Record<Case, number>> = { '10 entries': 10, '1000 entries': 1000 }
const LOAD = { without: 'none', dictionary: 'plugin' } as const

/** CPU seconds a process has used (utime + stime of /proc/<pid>/stat, in ticks of 10 ms). */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** The value that `share` of them lie below. */
const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((x, y) => x - y)[Math.floor(values.length * share)] ?? Number.NaN

const median = (values: readonly number[]): number => quantile(values, 0.5)

const figures = (): Record<Case, number[]> => ({
  without: [],
  '0 entries': [],
  '10 entries': [],
  '1000 entries': [],
  dictionary: []
})

async function start(name: Case, node: Node, under: readonly string[] = []): Promise<Gateway> {
  const load = name === 'without' || name === 'dictionary' ? LOAD[name] : 'hook'
  const gateway = await Gateway.start({ workers: 1, load, under })
  await gateway.configure({ u: { nodes: [node, node, node] } })
  const entries = Array.from({ length: ENTRIES[name] ?? 0 }, (_, i) => ({
    uid: `u-${i}`,
    ip: `10.${i >> 8}.0.${i & 255}`,
    ttl: 3600
  }))
  if (entries.length > 0) await gateway.barrier.put(...entries)
  return gateway
}

/** Microseconds of worker CPU per request. */
function microseconds(gateway: Gateway): number {
  const [pid = 0] = gateway.workers()
  const before = cpuOf(pid)
  const said = execFileSync('wrk', ['-t1', '-c16', `-d${SECONDS}s`, `${gateway.url}/u`], { encoding: 'utf8' })
  const requests = Number(/(\d+) requests in/.exec(said)?.[1])
  if (/Non-2xx/.test(said) || !(requests > 0)) throw new Error(said)
  return ((cpuOf(pid) - before) / requests) * 1e6
}

async function byClock(node: Node): Promise<Record<Case, number[]>> {
  const gateways = new Map<Case, Gateway>()
  const measured = figures()
  try {
    for (const name of CASES) gateways.set(name, await start(name, node))
    for (let round = 0; round < ROUNDS; round += 1) {
      // every other round backwards: a machine that gets slower from run to run must not be counted as a cost
      const order = round % 2 === 0 ? [...gateways] : [...gateways].toReversed()
      for (const [name, gateway] of order) measured[name].push(microseconds(gateway))
    }
  } finally {
    for (const gateway of gateways.values()) await gateway.stop()
  }
  return measured
}

/** What a worker executed from its start to its end, with `n` requests in between. */
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
      // the start, and what LuaJIT does before it has compiled everything, are in both and fall out
      const few = await total(name, node, REQUESTS)
      measured[name].push(((await total(name, node, 2 * REQUESTS)) - few) / REQUESTS)
    }
  }
  return measured
}

/** Each against the run without of the same round: the machine may be faster in one round than in the next. */
function told(unit: string, measured: Record<Case, number[]>): object[] {
  return CASES.map(name => {
    const over = measured[name].map((value, round) => value - (measured.without[round] ?? Number.NaN))
    return {
      case: name,
      [unit]: Number(median(measured[name]).toFixed(2)),
      over: Number(median(over).toFixed(2)),
      'middle half': [0.25, 0.75].map(share => quantile(over, share).toFixed(2)).join(' to ')
    }
  })
}

async function main(): Promise<void> {
  const server = 'location = /u { return 200 "ok"; }'
  const origin = await Gateway.start({ workers: 1, load: 'none', server })
  try {
    const [host = '', port = ''] = origin.at.gateway.split(':')
    const node = { host, port: Number(port) }
    console.log(`${nginxVersion()}; 3 % of ${APISIX_US} us are ${(APISIX_US * 0.03).toFixed(1)} us`)
    const clock = ROUNDS > 0 ? await byClock(node) : undefined
    if (clock) console.table(told('cpuUs', clock))
    const instructions = RUNS > 0 ? await byInstructions(node) : undefined
    if (instructions) console.table(told('instructions', instructions))
    console.log(JSON.stringify({ rounds: ROUNDS, seconds: SECONDS, clock, runs: RUNS, instructions }))
  } finally {
    await origin.stop()
  }
}

await main()
