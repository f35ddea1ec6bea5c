import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Gateway, nginxVersion } from './gateway.ts'

/**
 * What the plugin costs: worker CPU per request with and without it, by wrk over loopback, interleaved so that a slow
 * moment of the machine hits all alike. Prints a table and one line of JSON. Usage: node test/plugin/cost.ts [rounds]
 *
 * The gateway answers through an nginx that does nothing else (a second server of the same kind, without Lua), so the
 * share of the plugin is higher here than behind a real APISIX, which itself takes several times longer per request.
 */
const ROUNDS = Number(process.argv[2] ?? 6)
const SECONDS = 2
const CASES = ['without', '0 entries', '10 entries', '1000 entries'] as const
type Case = (typeof CASES)[number]

const ENTRIES: Record<Case, number> = { without: 0, '0 entries': 0, '10 entries': 10, '1000 entries': 1000 }

/** CPU seconds a process has used (utime + stime of /proc/<pid>/stat, in ticks of 10 ms). */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

const median = (values: readonly number[]): number =>
  [...values].sort((x, y) => x - y)[values.length >> 1] ?? Number.NaN

/** Microseconds of worker CPU per request. */
function measure(gateway: Gateway): number {
  const [pid = 0] = gateway.workers()
  const before = cpuOf(pid)
  const said = execFileSync('wrk', ['-t1', '-c16', `-d${SECONDS}s`, `${gateway.url}/u`], { encoding: 'utf8' })
  const requests = Number(/(\d+) requests in/.exec(said)?.[1])
  if (/Non-2xx/.test(said) || !(requests > 0)) throw new Error(said)
  return ((cpuOf(pid) - before) / requests) * 1e6
}

async function main(): Promise<void> {
  const gateways = new Map<Case, Gateway>()
  const origin = await Gateway.start({
    workers: 1,
    load: 'none',
    server: 'location = /u { return 200 "ok"; }'
  })
  try {
    const [host = '', port = ''] = origin.at.gateway.split(':')
    for (const name of CASES) {
      const gateway = await Gateway.start({ workers: 1, load: name === 'without' ? 'none' : 'plugin' })
      gateways.set(name, gateway)
      const nodes = [1, 2, 3].map(() => ({ host, port: Number(port) }))
      await gateway.configure({ u: { nodes } })
      const entries = Array.from({ length: ENTRIES[name] }, (_, i) => ({
        uid: `u-${i}`,
        ip: `10.${i >> 8}.0.${i & 255}`,
        ttl: 3600
      }))
      if (entries.length > 0) await gateway.barrier.put(...entries)
    }

    const figures: Record<Case, number[]> = {
      without: [],
      '0 entries': [],
      '10 entries': [],
      '1000 entries': []
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, gateway] of gateways) figures[name].push(measure(gateway))
    }

    // against the run without of the same round: the machine may be faster in one round than in the next
    const table = CASES.map(name => {
      const over = figures[name].map((us, round) => us - (figures.without[round] ?? Number.NaN))
      return {
        case: name,
        cpuUs: Number(median(figures[name]).toFixed(2)),
        overUs: Number(median(over).toFixed(2))
      }
    })
    console.table(table)
    console.log(JSON.stringify({ nginx: nginxVersion(), rounds: ROUNDS, seconds: SECONDS, table, figures }))
  } finally {
    for (const gateway of [origin, ...gateways.values()]) await gateway.stop()
  }
}

await main()
