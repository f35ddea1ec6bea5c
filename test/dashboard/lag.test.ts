import { expect } from 'chai'
import { systemClock } from '../../agent/base/clock.ts'
import { idleLagOf, lagOf } from '../../agent/page/lag.ts'
import type { DrainView, Snapshot } from '../../agent/page/snapshot.ts'
import type { Hook } from '../../sandbox/kubernetes/objects.ts'
import { now } from '../../sandbox/now.ts'
import { percentile } from '../../sandbox/percentile.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'

// Compares the lag that the page shows with the lag that the sandbox measures. The sandbox knows both ends: its API server
// commits the deletion, and its gateways know when nothing is in flight any more. The agent cannot know two parts of the
// difference: the time of the watch event on its way, after which the shown lag begins, and the error of the gateways' clocks.

const REPLICAS = 6
/** The first rollout that the machine did not slow down counts. The time that the agent itself adds is checked in every rollout. */
const MOST_ROLLOUTS = 5
const CLOSE_MS = 5
const EQUAL_MS = 20
const SLOW_MS = 9000
/** The least share of a rollout's drains that must be close. Another process of this machine may delay the other events. */
const MOST = 0.75

const preStop = (agentUrl: string): Hook => ({
  exec: {
    command: ['sh', '-c', `curl -fsS -m 25 --interface $POD_IP -X POST ${agentUrl}/v1/prestop || sleep 5`]
  }
})

/** Times in ms. */
interface Compared {
  readonly name: string
  /** The shown time minus the measured one: of the seal or of the last request, whichever differs more. */
  readonly off: number
  readonly sealedOff: number
  readonly idleOff: number
  readonly shownMs: number
  readonly shownIdleMs: number
  /** From the deletion until the agent got the event. */
  readonly eventMs: number
}

describe('sync lag, as shown and as measured', function () {
  this.timeout(180_000)
  let world: World
  before(async () => {
    world = await startWorld({ replicas: REPLICAS, gateways: 2, workers: 2, seed: 1, preStop })
  })
  after(() => world.close())

  it('differs by less than 5 ms under load', async () => {
    await world.startAgent()
    const load = world.startLoad({ rate: 100, seed: 1, traffic: 'no-uploads', timeoutMs: 5000 })
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 0, 10_000)
    const all: Compared[] = []
    let rollout: Compared[] = []
    for (let i = 1; i <= MOST_ROLLOUTS && !isClose(rollout); i++) {
      await rollOut({ store: world.kubernetes.store, kubelet: world.kubelet, timeoutMs: 30_000 })
      rollout = (await drainsOver(i * REPLICAS)).slice(0, REPLICAS).map(compare)
      all.push(...rollout)
    }
    await load.stop()

    const told = `off by ${all.map(({ off }) => off.toFixed(1)).join(' ')} ms`
    if (!isClose(rollout)) {
      // No event came in time on this machine. An error of the agent would be in the quickest one too.
      console.log(`      the machine was too busy to compare them all, ${told}`)
      const off = all.map(({ off }) => Math.abs(off))
      expect(percentile(off, 0.2), told).to.be.below(CLOSE_MS)
    }
    for (const { name, eventMs } of all) expect(eventMs, name).to.be.above(-1)
    // The delay of the events must explain the whole difference, so no repetition hides a delay of the agent.
    const added = all.map(({ off, eventMs }) => off + eventMs)
    expect(Math.abs(percentile(added, 0.5)), `${told}, without the events ${added.join(' ')}`).to.be.below(
      CLOSE_MS
    )
    await metricsAgree()
  })

  it('is within 20 ms for the seal and for the last request of most pods, with a request of 9 s in flight (D3)', async () => {
    const before = (await state()).past.length
    const sent = world.gateways.gateways.flatMap(({ proxy }) =>
      Array.from({ length: 2 * REPLICAS }, async () => (await fetch(`${proxy}?ms=${SLOW_MS}`)).status)
    )
    await rollOut({ store: world.kubernetes.store, kubelet: world.kubelet, timeoutMs: 60_000 })
    expect(new Set(await Promise.all(sent))).to.deep.equal(new Set([200]))
    const drains = (await drainsOver(before + REPLICAS)).slice(0, REPLICAS).map(compare)
    const slow = drains.filter(({ shownIdleMs, shownMs }) => shownIdleMs - shownMs > SLOW_MS / 2)
    const told = slow.map(one => JSON.stringify(one)).join('\n')
    expect(slow.length, told).to.be.above(0)
    // Shown less measured, without the delivery of the watch event, which another process of this machine may hold up.
    const sealed = slow.map(({ sealedOff, eventMs }) => Math.abs(sealedOff + eventMs))
    const idle = slow.map(({ idleOff, eventMs }) => Math.abs(idleOff + eventMs))
    for (const off of [sealed, idle]) {
      const equal = off.filter(ms => ms < EQUAL_MS).length
      expect(equal, told).to.be.at.least(MOST * slow.length)
      expect(percentile(off, 0.5), told).to.be.below(EQUAL_MS)
    }
    const off = slow.flatMap(({ sealedOff, idleOff }) => [Math.abs(sealedOff), Math.abs(idleOff)])
    console.log(
      `      ${slow.length} pods with a request of 9 s, off by at most ${Math.max(...off).toFixed(1)} ms`
    )
  })

  async function state(): Promise<Snapshot> {
    return (await (await fetch(`${world.agentUrl}/api/state`)).json()) as Snapshot
  }

  async function drainsOver(count: number): Promise<readonly DrainView[]> {
    let past: readonly DrainView[] = []
    const over = async () => (past = (await state()).past).length >= count
    await waitFor(`${count} drains are over`, over, 20_000)
    return past
  }

  const isClose = (drains: readonly Compared[]): boolean => {
    const off = drains.map(({ off }) => Math.abs(off))
    const close = off.filter(ms => ms < CLOSE_MS).length
    return percentile(off, 0.5) < CLOSE_MS && close >= MOST * REPLICAS
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
      throw new Error(`${pod}: not measured`)
    const eventMs = moments.seenAt - (systemClock.now() - now()) - decidedAt
    const [sealedOff, idleOff] = [shown - sealed, shownIdle - idle]
    const off = Math.abs(sealedOff) > Math.abs(idleOff) ? sealedOff : idleOff
    return { name: pod, off, sealedOff, idleOff, shownMs: shown, shownIdleMs: shownIdle, eventMs }
  }

  /** The histogram has the numbers that the page shows. */
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
