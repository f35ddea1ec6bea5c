import { expect } from 'chai'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { systemClock } from '../../agent/base/clock.ts'
import { idleLagOf, lagOf, type DrainView } from '../../agent/report/snapshot/drain-view.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { Hook } from '../../sandbox/kubernetes/objects.ts'
import { now } from '../../sandbox/now.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'

// Compares the lag that the page shows with the lag that the sandbox measures. The sandbox knows both ends: its API server
// commits the deletion, and its gateways know when they seal and when their last request ends, whether the agent asks or not.
//
// For every pod of every rollout, both shown times differ from the measured times by less than 20 ms. One delay is not the
// agent's: between the deletion and the read of its watch event, the API server and the agent may wait for a processor. The
// kernel counts how long their threads were ready to run without a processor (schedstat), and the test subtracts this time.
// So a busy machine does not fail the test, but a delay that the agent itself adds does.

const REPLICAS = 6
const EQUAL_MS = 20
const SLOW_MS = 9000
/** The interval of slow requests to each gateway. It is so short that every pod has some of them in flight when its end begins. */
const SEND_EVERY_MS = 600

const preStop = (agentUrl: string): Hook => ({
  exec: {
    command: ['sh', '-c', `curl -fsS -m 25 --interface $POD_IP -X POST ${agentUrl}/v1/prestop || sleep 5`]
  }
})

/** Times in ms. `…Off` is the error: the shown time minus the measured time. */
interface Compared {
  readonly name: string
  readonly sealedOff: number
  readonly idleOff: number
  readonly shownMs: number
  readonly shownIdleMs: number
  /** From the deletion until the agent got the event. */
  readonly eventMs: number
  /** How long the processes waited for a processor during that time. */
  readonly stalledMs: number
}

describe('sync lag, as shown and as measured', function () {
  this.timeout(240_000)
  let world: World
  let stalls: ReturnType<typeof watchStalls>
  before(async () => {
    world = await startWorld({ replicas: REPLICAS, gateways: 2, workers: 2, seed: 1, preStop })
    const { pid } = await world.startAgent()
    stalls = watchStalls([pid, process.pid])
    world.kubernetes.store.onChange('pods', ({ object: { metadata } }) => {
      if (metadata.deletionTimestamp !== undefined) stalls.sample()
    })
  })
  after(async () => {
    stalls?.stop()
    await world?.close()
  })

  it('differs by less than 20 ms for every pod under load', async () => {
    const load = world.startLoad({ rate: 100, seed: 1, traffic: 'no-uploads', timeoutMs: 5000 })
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 0)
    await measure()
    await load.stop()
    await metricsAgree()
  })

  it('differs by less than 20 ms for every pod with a request of 9 s in flight (D3)', async () => {
    const sent: Promise<number | undefined>[] = []
    const send = setInterval(() => {
      for (const { proxy } of world.gateways.gateways) sent.push(statusOf(`${proxy}?ms=${SLOW_MS}`))
    }, SEND_EVERY_MS)
    await waitFor('slow requests are under way', () => sent.length >= 4 * REPLICAS)
    const compared = await measure().finally(() => clearInterval(send))
    expect(new Set(await Promise.all(sent))).to.deep.equal(new Set([200]))
    const slow = compared.filter(({ shownIdleMs, shownMs }) => shownIdleMs - shownMs > SLOW_MS / 2)
    expect(slow.length, 'pods with a slow request').to.be.above(REPLICAS / 2)
  })

  /** Rolls out once, and checks every pod that ended. */
  async function measure(): Promise<readonly Compared[]> {
    const before = (await state()).past.length
    await rollOut({ store: world.kubernetes.store, kubelet: world.kubelet })
    const drains = (await drainsOver(before + REPLICAS)).slice(0, REPLICAS)
    const isMeasured = ({ uid }: DrainView) => world.syncLags.lagOf(uid, 'idle') !== undefined
    await waitFor('the sandbox has measured them', () => drains.every(isMeasured))
    const compared = drains.map(compare)
    const raw = compared.flatMap(({ sealedOff, idleOff }) => [Math.abs(sealedOff), Math.abs(idleOff)])
    const stalls = compared.map(({ stalledMs }) => stalledMs)
    console.log(
      `      ${compared.length} pods, off by at most ${Math.max(...raw).toFixed(1)} ms, with stalls of the machine of at most ${Math.max(...stalls).toFixed(1)} ms`
    )
    for (const one of compared) {
      const told = JSON.stringify(one)
      expect(one.eventMs, told).to.be.above(-1)
      // A late event makes the shown time too short: by its stalls, and no more.
      for (const off of [one.sealedOff, one.idleOff])
        expect(Math.abs(off), told).to.be.below(EQUAL_MS + one.stalledMs)
    }
    return compared
  }

  async function state(): Promise<Snapshot> {
    return (await (await fetch(`${world.agentUrl}/api/state`)).json()) as Snapshot
  }

  async function drainsOver(count: number): Promise<readonly DrainView[]> {
    let past: readonly DrainView[] = []
    const over = async () => (past = (await state()).past).length >= count
    await waitFor(`${count} drains are over`, over)
    return past
  }

  function compare({ uid, pod, moments }: DrainView): Compared {
    const [sealed, idle] = [world.syncLags.lagOf(uid, 'sealed'), world.syncLags.lagOf(uid, 'idle')]
    const decidedAt = world.syncLags.decidedAt(uid)
    const [shown, shownIdle] = [lagOf(moments), idleLagOf(moments)]
    if (
      sealed === undefined ||
      idle === undefined ||
      shown === null ||
      shownIdle === null ||
      decidedAt === undefined
    )
      throw new Error(`${pod}: not measured: ${JSON.stringify({ sealed, idle, shown, shownIdle, moments })}`)
    const seenAt = moments.seenAt - (systemClock.now() - now())
    return {
      name: pod,
      sealedOff: shown - sealed,
      idleOff: shownIdle - idle,
      shownMs: shown,
      shownIdleMs: shownIdle,
      eventMs: seenAt - decidedAt,
      stalledMs: stalls.between(decidedAt, seenAt)
    }
  }

  /** Expects that the histogram has the same numbers as the page. */
  async function metricsAgree(): Promise<void> {
    const text = await (await fetch(`${world.agentUrl}/metrics`)).text()
    const value = (name: string) => {
      const line = new RegExp(`^apisix_drain_sync_lag_seconds_${name}\\{direction="removal"\\} (\\S+)$`, 'm')
      return Number(line.exec(text)?.[1])
    }
    const { lags } = await state()
    const sum = lags.reduce((total, { ms }) => total + ms, 0)
    expect(value('count')).to.equal(lags.length)
    expect(value('sum') * 1000).to.be.closeTo(sum, 0.01)
  }
})

/** Returns the status of a GET. Unlike `fetch`, it has no time limit for the connection. */
const statusOf = async (url: string): Promise<number | undefined> => {
  const [answer] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode
}

/** Returns how long a thread was ready to run and had no processor, in ms. */
function waitedOf(schedstat: string): number {
  try {
    return Number(readFileSync(schedstat, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0 // the thread has ended
  }
}

/** Returns how long the host ran something else on this virtual machine's processors, in ms. The kernel counts in steps of 10 ms. */
const stolenMs = (): number =>
  Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) * 10

/**
 * Samples how long the threads of these processes were ready to run and had no processor, as the kernel counts it. All threads
 * count, because the main thread of Node.js waits for the others when V8 collects garbage.
 */
function watchStalls(pids: readonly number[]) {
  const samples: { readonly at: number; readonly waitedMs: number }[] = []
  const sample = (): void => {
    const waited = pids
      .flatMap(pid => readdirSync(`/proc/${pid}/task`).map(thread => `/proc/${pid}/task/${thread}/schedstat`))
      .reduce((sum, schedstat) => sum + waitedOf(schedstat), 0)
    samples.push({ at: now(), waitedMs: waited + stolenMs() })
  }
  sample()
  const timer = setInterval(sample, 2)
  return {
    sample,
    /** Returns the waits from the last sample before `from` to the first sample after `to`, in ms. Both times are by `now()`. */
    between(from: number, to: number): number {
      const first = samples.findLast(({ at }) => at <= from)
      const last = samples.find(({ at }) => at >= to)
      return first && last ? last.waitedMs - first.waitedMs : Infinity
    },
    stop: () => clearInterval(timer)
  }
}
