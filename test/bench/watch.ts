import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { now } from '../../sandbox/now.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import type { MountedAccount } from '../../sandbox/kubernetes/account.ts'
import type { TestPod } from '../build/pods.ts'
import { bigPod } from './big-pod.ts'
import { startPlace, type Place } from './place.ts'
import { useOf } from './process-use.ts'
import { spread, type Spread } from './stats.ts'

/** The cost of watching a cluster's pods, and of acting while they change. */
export interface WatchResult {
  readonly pods: number
  readonly podBytes: number
  /** The time to read the same bytes over the same kind of connection, without parsing them. */
  readonly floorMs: number
  /** The time until the agent knows all pods, including the connection, as the agent logs it. */
  readonly syncMs: number
  /** The agent's memory right after the sync. `peakMb` is the highest value until the end. */
  readonly rssMb: number
  readonly peakMb: number
  /** CPU time of the agent for 1000 changes, while `EVENTS.perSecond` pods change and none ends. */
  readonly cpuPer1000EventsMs: number
  /** The time from the deletion of a pod to its seal at the last gateway, while `ENDING.changes` other pods change a second. */
  readonly actionMs: Spread
  /** The largest delay of a timer in the agent, the sync included. */
  readonly stallMs: number
  /** The time from the silent end of the connection to the API server until the agent reports it. */
  readonly halfOpenMs: number
}

const GATEWAYS = 3
const READY_MS = 600_000
const TICK_MS = 5
const MOST_IN_TICK = 10
const EVENTS = { perSecond: 1000, forMs: 5000 }
const ENDING = { pods: 200, everyMs: 100, changes: 200 }

export async function watchPods(count: number): Promise<WatchResult> {
  let bytes = 0
  let floorMs = 0
  const names: string[] = []
  let web: TestPod[] = []
  const place = await startPlace({ gateways: GATEWAYS }, async place => {
    const { store } = place.kubernetes
    for (let i = 0; i < count; i += 1) {
      const pod = bigPod(store, `app${i % 50}-${i}`, i)
      bytes += JSON.stringify(pod).length
      names.push(pod.metadata.name)
    }
    // Two more pods than will be measured: one stays, and one ends before the others.
    web = Array.from({ length: ENDING.pods + 2 }, (_, i) => place.pod(`web-${i}`))
    await place.upstream('web', web)
    floorMs = await readAlone(place.account)
  })
  try {
    let stallMs = 0
    const stall = async () => {
      // The metric includes the 10 ms interval of the agent's timer, which is subtracted here.
      stallMs = Math.max(stallMs, ((await place.metric(LAG)) - 0.01) * 1000)
    }
    const known = async () => {
      await stall()
      return (await place.podsKnown()) >= count + ENDING.pods
    }
    await waitFor(`${count} pods are known`, known, { withinMs: READY_MS })
    await place.settled(1)
    const { rssMb } = useOf(place.agent.pid)
    const [, first, ...ending] = web as [TestPod, TestPod, ...TestPod[]]
    const cpuPer1000EventsMs = await whilePodsChange(place, names, first)
    const actionMs = await whilePodsEnd(place, names, ending)
    await stall()
    const { peakMb } = useOf(place.agent.pid)
    return {
      pods: count,
      podBytes: Math.round(bytes / count),
      floorMs: Math.round(floorMs),
      syncMs: await loggedSync(place.agent.logFile),
      rssMb,
      peakMb,
      cpuPer1000EventsMs,
      actionMs,
      stallMs: Math.round(stallMs),
      halfOpenMs: await untilNoticed(place)
    }
  } finally {
    await place.close()
  }
}

const LAG = 'nodejs_eventloop_lag_max_seconds'

async function readAlone(account: MountedAccount): Promise<number> {
  const child = fork(fileURLToPath(new URL('read-pods-main.ts', import.meta.url)), [JSON.stringify(account)])
  const [ms] = (await once(child, 'message')) as [number]
  return ms
}

/** Makes irrelevant changes in sequence. The returned function ends them and gives their number. */
function changing({ kubernetes: { store } }: Place, names: readonly string[], perSecond: number) {
  const startedAt = performance.now()
  let changes = 0
  const change = () => {
    const due = ((performance.now() - startedAt) * perSecond) / 1000
    // If the stand-in cannot keep up, it makes fewer changes instead of all at once.
    for (const end = Math.min(due, changes + MOST_IN_TICK); changes < end; changes += 1) {
      const name = names[(changes * 7919) % names.length]!
      store.patchStatus('pods', 'shop', name, { message: `changed ${changes}` })
    }
  }
  const ticking = setInterval(change, TICK_MS)
  return () => {
    clearInterval(ticking)
    return changes
  }
}

async function whilePodsChange(place: Place, names: readonly string[], last: TestPod): Promise<number> {
  const before = useOf(place.agent.pid).cpuMs
  const stop = changing(place, names, EVENTS.perSecond)
  await wait(EVENTS.forMs)
  const changes = stop()
  // Events come in order: once the agent has acted on this end, it has read all changes.
  place.end(last)
  await sealed(place, [last])
  return Math.round(((useOf(place.agent.pid).cpuMs - before) / changes) * 1000)
}

async function whilePodsEnd(
  place: Place,
  names: readonly string[],
  ending: readonly TestPod[]
): Promise<Spread> {
  const endedAt = new Map<string, number>()
  const stop = changing(place, names, ENDING.changes)
  try {
    for (const pod of ending) {
      place.end(pod)
      // The time is taken after the stand-in has sent the event, so that it does not include the stand-in's own work.
      endedAt.set(pod.uid, now())
      await wait(ENDING.everyMs)
    }
  } finally {
    stop()
  }
  const sealedAt = await sealed(place, ending)
  return spread(ending.map(({ uid }, i) => (sealedAt[i] ?? 0) - (endedAt.get(uid) ?? 0)))
}

/** Returns for each pod when the last gateway sealed it. */
async function sealed({ gateways }: Place, pods: readonly TestPod[]): Promise<readonly number[]> {
  const seen = (uid: string) =>
    gateways.confirmations().filter(one => one.uid === uid && one.what === 'sealed')
  await waitFor('all are sealed', () => pods.every(({ uid }) => seen(uid).length === GATEWAYS), {
    withinMs: READY_MS
  })
  return pods.map(({ uid }) => Math.max(...seen(uid).map(({ at }) => at)))
}

async function untilNoticed(place: Place): Promise<number> {
  const thaw = place.kubernetes.faults.freezeConnections({ newOnes: true })
  const frozenAt = performance.now()
  try {
    const isLive = () => place.metric('apisix_drain_watch_state', 'kind="pods",state="live"')
    await waitFor('the agent notices', async () => (await isLive()) === 0, { withinMs: READY_MS })
    return Math.round(performance.now() - frozenAt)
  } finally {
    thaw()
  }
}

/** Returns how long the sync of the pods took, from the agent's log. @throws Error if the log does not contain it */
async function loggedSync(file: string): Promise<number> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line.includes('watch is live'))
  const said = lines.map(line => JSON.parse(line) as { watch?: string; tookMs?: number })
  const took = said.find(({ watch }) => watch === 'pods')?.tookMs
  if (took === undefined) throw new Error('the agent did not log how long the pods took')
  return took
}
