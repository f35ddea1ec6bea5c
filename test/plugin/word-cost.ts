import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from 'node:http'
import { send } from './client.ts'
import { Gateway, nginxVersion } from './gateway.ts'
import { cpuOf } from './held.ts'

/**
 * Measures the cost of the workers' words with 5,000 upstreams of 10 nodes, a route to each, and 100 entries. The figures are
 * how long a worker computes words without a break (requests wait for that long), the latency for clients, and the CPU of
 * an idle worker.
 *
 * Usage: node test/plugin/word-cost.ts [upstreams] [nodes of each] [entries] [seconds of idling]
 *
 * Clients and workers share this machine. So for clients, only the difference from the row `before` matters. For the time
 * without a break, only the excess over the first row matters: there a worker only reads the clock, 0.2 ms at a time.
 */
const [UPSTREAMS = 5000, NODES = 10, ENTRIES = 100, SECONDS = 10] = process.argv.slice(2).map(Number)
const WORKERS = 2
const REQUESTS_A_SECOND = 400
const CHANGES = 100

/** Records CPU and time of each part of the work. A part begins with a timer's call or after a sleep, and ends at the next sleep. */
const PARTS = `
  local ffi = require("ffi")
  ffi.cdef[[int bench_clock(int id, void *at) __asm__("clock_gettime");]]
  local at = ffi.new("long[2]")
  local function clock(id)
    ffi.C.bench_clock(id, at)
    return (tonumber(at[0]) + tonumber(at[1]) / 1e9) * 1e3
  end
  local began, parts = setmetatable({}, { __mode = "k" }), {}
  local function begin() began[coroutine.running()] = { clock(2), clock(1) } end
  local function note()
    local from = began[coroutine.running()]
    if from then parts[#parts + 1] = { clock(2) - from[1], clock(1) - from[2] } end
  end
  local sleep, every = ngx.sleep, ngx.timer.every
  ngx.sleep = function(seconds)
    local ours = began[coroutine.running()]
    if ours then note() end
    sleep(seconds)
    if ours then begin() end
  end
  function measured(act)
    return function(...) begin() act(...) note() began[coroutine.running()] = nil end
  end
  ngx.timer.every = function(delay, act, ...)
    return every(delay, delay == 0.02 and measured(act) or act, ...)
  end
  -- parts of 0.2 ms that do nothing but look at the clock
  function spin(n)
    for i = 1, n do
      local till = clock(1) + 0.2
      while clock(1) < till do end
      ngx.sleep(0.001)
    end
  end
  function take_parts(n)
    local all = parts
    parts = {}
    if n then ngx.timer.at(0, measured(function() spin(tonumber(n)) end)) end
    return all
  end
`

const REQUESTS = `
  local api = require("apisix.drain.api")
  api.serve = measured(api.serve)
`

interface Figures {
  phase: string
  parts: number
  /** The times below are in milliseconds. */
  cpuP99: string
  cpuMax: string
  timeMax: string
  requestP50: string
  requestP99: string
  requestMax: string
  took: string
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((x, y) => x - y)[Math.min(Math.floor(values.length * share), values.length - 1)] ?? 0

/** Returns the parts of both workers. Each new connection reaches one of them, so this repeats until both have answered. */
async function partsOf(gateway: Gateway, door = '/parts'): Promise<number[][]> {
  const all: number[][] = []
  const seen = new Set<number>()
  while (seen.size < WORKERS) {
    const told = JSON.parse(await gateway.door(door)) as { pid: number; parts: number[][] | object }
    seen.add(told.pid)
    if (Array.isArray(told.parts)) all.push(...(told.parts as number[][]))
  }
  return all
}

async function phase(
  gateway: Gateway,
  name: string,
  act: () => Promise<unknown>,
  door?: string
): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  await partsOf(gateway, door)
  const latencies: number[] = []
  const asked: Promise<unknown>[] = []
  const ask = async () => {
    const began = performance.now()
    await send(`${gateway.url}/u`, { agent })
    latencies.push(performance.now() - began)
  }
  const load = setInterval(() => asked.push(ask()), 1000 / REQUESTS_A_SECOND)
  const began = performance.now()
  await act()
  const took = performance.now() - began
  clearInterval(load)
  await Promise.all(asked)
  agent.destroy()
  const parts = await partsOf(gateway)
  const [cpu, time] = [0, 1].map(i => parts.map(part => part[i] ?? 0)) as [number[], number[]]
  const ms = (value: number) => value.toFixed(2)
  return {
    phase: name,
    parts: parts.length,
    cpuP99: ms(quantile(cpu, 0.99)),
    cpuMax: ms(Math.max(0, ...cpu)),
    timeMax: ms(Math.max(0, ...time)),
    requestP50: ms(quantile(latencies, 0.5)),
    requestP99: ms(quantile(latencies, 0.99)),
    requestMax: ms(Math.max(0, ...latencies)),
    took: `${(took / 1000).toFixed(2)} s`
  }
}

const pod = (i: number) => ({
  uid: `pod-${i}`,
  ip: `10.${1 + (i % NODES)}.${Math.floor((50 * i) / 250)}.${(50 * i) % 250}`,
  port: 8080
})

/** Waits for the word on one entry only, because an answer with all entries is slow by itself. */
async function spoken(gateway: Gateway): Promise<void> {
  for (;;) {
    const { entries } = await gateway.barrier.inflight(['pod-0'])
    if (entries.every(({ word }) => word.said === WORKERS)) return
    await wait(5)
  }
}

/** Returns the CPU of one idle worker, in milliseconds a second. */
async function idle(gateway: Gateway): Promise<string> {
  const used = () => gateway.workers().reduce((sum, pid) => sum + cpuOf(pid), 0)
  const before = used()
  await wait(SECONDS * 1000)
  return ((used() - before) / 1e6 / SECONDS / WORKERS).toFixed(2)
}

async function main(): Promise<void> {
  const server = 'location = /u { return 200 "ok"; }'
  const origin = await Gateway.start({ workers: 1, load: 'none', server })
  const gateway = await Gateway.start({ workers: WORKERS, early: PARTS, before: REQUESTS, counts: '10m' })
  try {
    const [host = '', port = ''] = origin.at.gateway.split(':')
    const u = { nodes: [{ host, port: Number(port) }] }
    const config = (objects: object) => gateway.configured({ u, objects })
    console.log(
      `${nginxVersion()}; ${UPSTREAMS} upstreams of ${NODES} nodes, ${ENTRIES} entries, ${availableParallelism()} processors`
    )
    await config({ many: { upstreams: UPSTREAMS, nodes: NODES } })
    const idling: Record<string, string> = { 'no words wanted': await idle(gateway) }
    const rows = [
      await phase(gateway, 'parts of 0.2 ms that do nothing', () => wait(5000), '/parts?spin=1000'),
      await phase(gateway, 'before', () => wait(2000))
    ]
    const entries = Array.from({ length: ENTRIES }, (_, i) => pod(i))
    rows.push(await phase(gateway, `${ENTRIES} entries, no words`, () => gateway.barrier.put(...entries)))
    gateway.barrier.words = true
    rows.push(
      await phase(gateway, 'the index is made', async () => {
        await gateway.barrier.put(pod(0))
        await spoken(gateway)
      })
    )
    let quick = 0
    rows.push(
      await phase(gateway, `${CHANGES} puts`, async () => {
        for (let i = 0; i < CHANGES; i += 1) {
          const answer = await gateway.barrier.put({ ...pod(i % ENTRIES), uid: `more-${i}` })
          if (answer.entries[0]!.word.said === WORKERS) quick += 1
          await wait(20)
        }
      })
    )
    rows.push(
      await phase(gateway, `${CHANGES} changes of an upstream`, async () => {
        for (let i = 0; i < CHANGES; i += 1) {
          const nodes = [{ host: pod(0).ip, port: 8080, weight: 1 + i }]
          await gateway.configure({
            u,
            objects: { replace: { kind: 'upstreams', value: { id: 'u1', nodes } } }
          })
          await wait(20)
        }
        await spoken(gateway)
      })
    )
    idling['with the entries'] = await idle(gateway)
    const { entries: held } = await gateway.barrier.state()
    await gateway.barrier.remove(...held.map(({ uid }) => uid))
    await wait(500)
    idling['no entries any more'] = await idle(gateway)
    console.table(rows)
    console.log(`words of all workers in the answer to the put: ${quick} of ${CHANGES}`)
    console.log(`ms of CPU a second of a worker that idles: ${JSON.stringify(idling)}`)
    console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}`)
  } finally {
    await gateway.stop()
    await origin.stop()
  }
}

await main()
