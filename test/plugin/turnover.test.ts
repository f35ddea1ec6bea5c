import { expect } from 'chai'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Backend } from './backend.ts'
import type { StateOut } from './barrier.ts'
import { stopAll } from './clean-up.ts'
import { type Reply, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

/** Workers that start and end during a drain. `TURNOVER=20` runs the long version: 20 reloads and 20 crashes. */
const ROUNDS = Number(process.env.TURNOVER ?? 2)
const REQUESTS = 8

interface Sent {
  readonly id: string
  readonly reply: Promise<Reply | undefined>
}

interface Look {
  readonly to: number
  readonly fit: boolean
  readonly unfit: string
  readonly requests: number
}

describe('Workers that come and go in mid-drain', () => {
  let gateway: Gateway | undefined
  let pod: Backend
  /** While this file exists, all new workers except the first wait in init_worker. */
  let gate: string

  beforeEach(async () => {
    pod = await Backend.start()
  })
  afterEach(async () => {
    if (gate) rmSync(gate, { force: true })
    await stopAll(gateway, pod)
    gateway = undefined
  })

  async function start(): Promise<Gateway> {
    gate = join('/tmp', `apisix-drain-gate-${process.pid}-${performance.now()}`)
    const started = await Gateway.start({
      workers: 3,
      // the start of a worker takes as long as with APISIX; a test may make it longer
      before: `
        local function held()
          local file = ngx.worker.id() > 0 and io.open("${gate}")
          return file and file:close()
        end
        if ngx.worker.id() > 0 then os.execute("sleep 0.1") end
        while held() do os.execute("sleep 0.01") end`
    })
    gateway = started
    await started.configured({ u: { nodes: [pod.node] } })
    await started.untilFit()
    return started
  }

  let made = 0
  /** Sends requests that the pod holds until it is released. */
  async function inFlight(g: Gateway): Promise<Sent[]> {
    const sent = Array.from({ length: REQUESTS }, () => {
      const id = String((made += 1))
      return { id, reply: send(`${g.url}/u?hold&id=${id}`).catch(() => undefined) }
    })
    await eventually('all have arrived', () =>
      sent.every(({ id }) => pod.requests.some(url => url.endsWith(`&id=${id}`)))
    )
    return sent
  }

  /** Reads the counts again and again until it is ended. Each read has a new connection, so that any worker may answer. */
  function look(g: Gateway) {
    const looks: Look[] = []
    const over = new AbortController()
    let broken = 0
    const read = async (ask: () => Promise<Pick<StateOut, 'fit' | 'entries'> & { unfit?: string[] }>) => {
      try {
        const { fit, unfit = [], entries } = await ask()
        const requests = entries[0]?.inflight.requests ?? Number.NaN
        looks.push({ to: performance.now(), fit, unfit: unfit.join('; '), requests })
      } catch {
        broken += 1
      }
    }
    const ended = (async () => {
      while (!over.signal.aborted) {
        await read(() => g.barrier.state())
        await read(() => g.barrier.inflight([pod.uid]))
        await read(() => g.barrier.put(pod.sealed))
      }
    })()
    return {
      looks,
      async end() {
        over.abort()
        await ended
        return broken
      }
    }
  }

  /** Plays one reload or crash. `turn` gets the worker of each request, and returns the worker that it has killed, if any. */
  async function round(g: Gateway, turn: (workers: readonly number[]) => number | void) {
    await g.barrier.put(pod.entry())
    const sent = await inFlight(g)
    const workers = await Promise.all(sent.map(async ({ id }) => Number(await g.door(`/worker?id=${id}`))))
    await g.barrier.put(pod.sealed)
    const old = g.workers()
    const looking = look(g)
    await eventually('a look before it', () => looking.looks.length > 0)
    const killed = turn(workers)
    await eventually('the new workers serve, and were looked at', async () => {
      const before = looking.looks.length
      const fresh = (await g.barrier.state()).workers.filter(({ pid }) => !old.includes(pid))
      if (fresh.length < (killed === undefined ? old.length : 1)) return false
      await eventually('ten more looks', () => looking.looks.length >= before + 10)
      return true
    })
    const releasedAt = performance.now()
    pod.release()
    const got = await Promise.all(sent.map(async ({ reply }) => await reply))
    const broken = await looking.end()
    const lost = sent.filter((_, i) => workers[i] === killed)
    expect(sent.filter((_, i) => got[i]?.status !== 200)).to.deep.equal(lost)
    expect(looking.looks.filter(({ fit }) => !fit)).to.deep.equal([])
    const held = REQUESTS - lost.length
    expect(looking.looks.filter(({ to, requests }) => to < releasedAt && !(requests >= held))).to.deep.equal(
      []
    )
    await eventually('it is fit and idle', async () => {
      const { fit, entries } = await g.barrier.put(pod.sealed)
      return fit && entries[0]?.inflight.requests === 0
    })
    await g.barrier.remove(pod.uid)
    return { looks: looking.looks.length, broken, lost: lost.length }
  }

  it(`${ROUNDS} reloads: nothing is lost, the gateway is never unfit, and reports every request until it ends`, async () => {
    const g = await start()
    let looked = 0
    for (let i = 0; i < ROUNDS; i += 1) {
      const told = await round(g, () => g.reload())
      expect(told.broken).to.equal(0)
      looked += told.looks
    }
    console.log(`      ${looked} looks`)
  }).timeout(60_000 + ROUNDS * 15_000)

  it(`${ROUNDS} crashes of a worker: only its own requests are lost, and the gateway is never unfit`, async () => {
    const g = await start()
    let looked = 0
    let lost = 0
    for (let i = 0; i < ROUNDS; i += 1) {
      const told = await round(g, busy => {
        const share = (pid: number) => busy.filter(one => one === pid).length || REQUESTS - 0.5
        // the kernel may have given most connections to one worker, so the test kills the worker with the fewest (at least one)
        const killed = g.workers().toSorted((x, y) => share(x) - share(y))[0] ?? 0
        process.kill(killed, 'SIGKILL')
        return killed
      })
      looked += told.looks
      lost += told.lost
    }
    console.log(`      ${looked} looks, ${lost} of ${ROUNDS * REQUESTS} requests lost with their worker`)
  }).timeout(60_000 + ROUNDS * 15_000)

  it(`workers that have not started yet do not make the gateway unfit, after a reload and a crash`, async () => {
    const g = await start()
    await g.barrier.put(pod.entry())
    const sent = await inFlight(g)
    const old = g.workers()
    writeFileSync(gate, '')
    g.reload()
    await eventually('only the first new one has registered, and the old ones are exiting', async () => {
      const { workers } = await g.barrier.state()
      const fresh = workers.filter(({ pid }) => !old.includes(pid))
      return fresh.length === 1 && workers.filter(w => w.exiting).length === workers.length - 1
    })
    const title = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const masters = () => g.workers().filter(pid => title(pid).startsWith('nginx: master'))
    // a starting worker has the title of the master; the first worker registers a moment before it sets its own title
    await eventually('two are starting', () => masters().length === 2)
    const starting = masters()
    const { fit, unfit, entries } = await g.barrier.state()
    expect({ fit, unfit }).to.deep.equal({ fit: true, unfit: [] })
    expect(entries[0]?.inflight.requests).to.equal(REQUESTS)
    process.kill(starting[0] ?? 0, 'SIGKILL')
    await eventually('another one is started', () =>
      g.workers().some(pid => !old.includes(pid) && !starting.includes(pid))
    )
    const again = await g.barrier.state()
    expect({ fit: again.fit, unfit: again.unfit }).to.deep.equal({ fit: true, unfit: [] })
    rmSync(gate)
    await eventually('all serve', async () => {
      const { workers, fit: ok } = await g.barrier.state()
      return ok && workers.filter(w => !old.includes(w.pid)).length === 3
    })
    pod.release()
    for (const { reply } of sent) expect((await reply)?.status).to.equal(200)
  })
})
