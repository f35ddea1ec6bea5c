import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { EntryIn } from './barrier.ts'
import { Gateway, type Node } from './gateway.ts'

/** Lua that runs before the plugin: after `/break?what=current`, the hooks fail when they read the deny-list. */
export const CURRENT_CAN_BREAK = `
  local entries = require("apisix.drain.entries")
  local current = entries.current
  entries.current = function(self)
    if ngx.shared["stand-in"]:get("broken") == "current" and ngx.get_phase() ~= "content" then
      error("a bug")
    end
    return current(self)
  end`

/** The CPU time that a process has used, in ns. */
export const cpuOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0])

/** Returns `n` entries like those of a cluster, with uids as long as in Kubernetes. */
export const heldEntries = (n: number, differs: Partial<EntryIn> = {}): EntryIn[] =>
  Array.from({ length: n }, (_, i) => ({
    uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    ip: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    port: 8080,
    ttl: 3600,
    ...differs
  }))

const BATCH = 1000
const IDLE_MS = 1000

export async function putAll({ barrier }: Gateway, entries: readonly EntryIn[]): Promise<void> {
  for (let from = 0; from < entries.length; from += BATCH)
    await barrier.put(...entries.slice(from, from + BATCH))
}

/** The CPU time of all workers together, in microseconds, without the CPU that idle workers use. */
export interface HeldCost {
  /** One read of the state in the agent's form. */
  readonly summary: number
  /** One read of the state with all entries. */
  readonly state: number
  /** The put, seal and removal of one more entry, until every worker has applied them. */
  readonly change: number
  /** The cost of a renewal of all entries, divided by their number. */
  readonly renewal: number
  /** One second without requests; most of it is the stand-in for APISIX. */
  readonly idleSecond: number
}

/** Measures the cost for a gateway that holds this many entries. `calls` is the number of calls of each kind. */
export async function costOfHeld(held: number, calls: number, workers = 1): Promise<HeldCost> {
  const gateway = await Gateway.start({ workers, dictionary: '10m', counts: '10m' })
  try {
    const { barrier } = gateway
    const entries = heldEntries(held, { state: 'sealed' })
    await putAll(gateway, entries)
    await gateway.lookedAgain()
    const pids = gateway.workers()
    const used = () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0)
    const per = async (act: () => Promise<unknown>) => {
      const [before, from] = [used(), performance.now()]
      await act()
      return { us: (used() - before) / 1000, ms: performance.now() - from }
    }
    let idlePerMs = 0
    const each = async (times: number, act: () => Promise<unknown>): Promise<number> => {
      const { us, ms } = await per(async () => {
        for (let i = 0; i < times; i += 1) await act()
      })
      return Math.max(1, us - ms * idlePerMs) / times
    }
    const other: EntryIn = { uid: 'other', ip: '10.255.0.1' }
    const change = async () => {
      await barrier.put(other)
      await barrier.put({ ...other, state: 'sealed' })
      await barrier.remove(other.uid)
    }
    // these calls warm up LuaJIT, which compiles frequent code in each worker
    await each(calls * workers, () => barrier.summary())
    for (let i = 0; i < 2 * workers; i += 1) await putAll(gateway, entries)
    await each(calls, change)
    const idle = await per(async () => await wait(IDLE_MS))
    idlePerMs = idle.us / idle.ms
    return {
      summary: await each(calls, () => barrier.summary()),
      state: await each(Math.ceil(calls / 10), () => barrier.state()),
      change: await each(calls, change),
      renewal: held === 0 ? 0 : (await each(workers, () => putAll(gateway, entries))) / held,
      idleSecond: idlePerMs * 1000
    }
  } finally {
    await gateway.stop()
  }
}

/**
 * Lua that runs before the plugin, and answers two paths more. `/kept`: the memory of the worker's Lua that no collection frees, in kB.
 * `/steps`: the thousands of instructions that the worker has run since the last call. Machine code is not counted, so there is none.
 */
const MEASURED = `
  local steps, door = 0, apisix.test_door
  apisix.test_door = function()
    if ngx.var.uri == "/kept" then
      collectgarbage()
      ngx.say(collectgarbage("count"))
    elseif ngx.var.uri == "/steps" then
      jit.off()
      jit.flush()
      debug.sethook(function() steps = steps + 1 end, "", 1000)
      ngx.say(steps)
      steps = 0
    else
      return door()
    end
  end`

/** The thousands of instructions for 60 reads of the state in the agent's form, and for 60 changes of another entry. */
export async function stepsOfHeld(held: number): Promise<{ reads: number; changes: number }> {
  const gateway = await Gateway.start({ workers: 1, dictionary: '10m', counts: '10m', before: MEASURED })
  try {
    const { barrier } = gateway
    await putAll(gateway, heldEntries(held, { state: 'sealed' }))
    await gateway.lookedAgain()
    const each = async (act: () => Promise<unknown>) => {
      await gateway.door('/steps')
      for (let i = 0; i < 60; i++) await act()
      return Number(await gateway.door('/steps'))
    }
    const other: EntryIn = { uid: 'other', ip: '10.255.0.1' }
    return {
      reads: await each(() => barrier.summary()),
      changes: await each(async () => {
        await barrier.put(other)
        await barrier.put({ ...other, state: 'sealed' })
        await barrier.remove(other.uid)
      })
    }
  } finally {
    await gateway.stop()
  }
}

const PIPELINED = 50

/** Sends `n` requests under `path`, each with a URI that no other request has, over one connection. */
async function newUris(address: string, path: string, n: number): Promise<void> {
  const [host, port] = address.split(':')
  const socket = connect(Number(port), host)
  let [sent, answered, rest] = [0, 0, '']
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const next = () => {
    const batch = Array.from(
      { length: Math.min(PIPELINED, n - sent) },
      () => `GET ${path}/${crypto.randomUUID()} HTTP/1.1\r\nHost: x\r\n\r\n`
    )
    sent += batch.length
    socket.write(batch.join(''))
  }
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    const parts = (rest + text).split('HTTP/1.1 200 OK')
    answered += parts.length - 1
    rest = (parts.at(-1) ?? '').slice(-15)
    if (answered === n) resolve()
    else if (answered === sent) next()
  })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`closed after ${answered} answers: ${rest}`)))
  next()
  await done
  socket.removeAllListeners('close')
  socket.destroy()
}

/** The memory that a worker with these entries keeps after `n` requests to a simple route, each with a new URI, in kB. */
export async function keptAfter(n: number, entriesOf: (gateway: Gateway) => EntryIn[]): Promise<number> {
  const gateway = await Gateway.start({
    workers: 1,
    plugins: ['ai'],
    before: MEASURED,
    server: `keepalive_requests ${n + 1};`
  })
  try {
    await gateway.configured({ u: { home: 'routes', nodes: [nodeOf(gateway)] } })
    await gateway.barrier.put(...entriesOf(gateway))
    await newUris(gateway.at.gateway, '/u', n)
    return Number(await gateway.door('/kept'))
  } finally {
    await gateway.stop()
  }
}

/** A node that answers every request. */
export function nodeOf({ at }: Gateway): Node {
  const [host = '', port] = at.door.split(':')
  return { host, port: Number(port) }
}
