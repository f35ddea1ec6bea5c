import { readFile } from 'node:fs/promises'
import { now } from '../../sandbox/now.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { useOf } from './process-use.ts'
import { startPlace, type Place } from './place.ts'
import { bigPod } from './big-pod.ts'
import { spread, type Spread } from './stats.ts'
import type { TestPod } from '../build/pods.ts'

/** What it costs to know the pods of a cluster, and to act while they change. */
export interface WatchResult {
  readonly pods: number
  readonly podBytes: number
  /** Until all are known, connecting included, as the agent logs it. */
  readonly syncMs: number
  /** Right after the sync, and the highest at the end. */
  readonly rssMb: number
  readonly peakMb: number
  /** From the deletion of a pod to the seal at the last gateway, while other pods change. */
  readonly actionMs: Spread
  /** How late a timer of the agent was at most while pods changed. */
  readonly stallMs: number
  readonly cpuPer1000EventsMs: number
}

const GATEWAYS = 3
const READY_MS = 300_000
/** Changes of other pods a second, and how often a pod ends meanwhile. */
const CHANGES = 200
const TICK_MS = 50
const ENDING = 60
const END_EVERY_MS = 200

export async function watchPods(count: number): Promise<WatchResult> {
  let bytes = 0
  const names: string[] = []
  let web: TestPod[] = []
  const place = await startPlace({ gateways: GATEWAYS }, async place => {
    const { store } = place.kubernetes
    for (let i = 0; i < count; i += 1) {
      const pod = bigPod(store, `app${i % 50}-${i}`, i)
      bytes += JSON.stringify(pod).length
      names.push(pod.metadata.name)
    }
    web = Array.from({ length: ENDING + 1 }, (_, i) => place.pod(`web-${i}`))
    await place.upstream('web', web)
  })
  try {
    const known = async () => (await place.metric('apisix_drain_watch_objects', '"pods"')) >= count + ENDING
    await waitFor(`${count} pods are known`, known, READY_MS)
    await place.settled(1)
    const { rssMb } = useOf(place.agent.pid)
    const busy = await whilePodsChange(place, names, web.slice(1))
    return {
      pods: count,
      podBytes: Math.round(bytes / count),
      syncMs: await loggedSync(place.agent.logFile),
      rssMb,
      peakMb: useOf(place.agent.pid).peakMb,
      ...busy
    }
  } finally {
    await place.close()
  }
}

async function whilePodsChange(place: Place, names: readonly string[], ending: readonly TestPod[]) {
  const { store } = place.kubernetes
  let changes = 0
  const change = () => {
    for (let i = 0; i < (CHANGES * TICK_MS) / 1000; i += 1, changes += 1) {
      const name = names[(changes * 7919) % names.length]!
      store.patchStatus('pods', 'shop', name, { message: `changed ${changes}` })
    }
  }
  const lag = () => place.metric('apisix_drain_process_event_loop_lag_seconds')
  await lag()
  const before = useOf(place.agent.pid).cpuMs
  const ticking = setInterval(change, TICK_MS)
  const endedAt = new Map<string, number>()
  let stallMs = 0
  try {
    for (const pod of ending) {
      endedAt.set(pod.uid, now())
      place.end(pod)
      const next = performance.now() + END_EVERY_MS
      await waitFor('the next pod', () => performance.now() >= next, READY_MS)
      stallMs = Math.max(stallMs, (await lag()) * 1000)
    }
  } finally {
    clearInterval(ticking)
  }
  const cpuMs = useOf(place.agent.pid).cpuMs - before
  const sealed = (uid: string) => place.gateways.confirmations().filter(seen => seen.uid === uid)
  await waitFor('all are sealed', () => ending.every(({ uid }) => sealed(uid).length === GATEWAYS), READY_MS)
  return {
    actionMs: spread(
      ending.map(({ uid }) => Math.max(...sealed(uid).map(({ at }) => at)) - (endedAt.get(uid) ?? 0))
    ),
    stallMs: Math.round(stallMs),
    cpuPer1000EventsMs: Math.round((cpuMs / changes) * 1000)
  }
}

/** @throws Error where the log does not say it */
async function loggedSync(file: string): Promise<number> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line.includes('watch is live'))
  const said = lines.map(line => JSON.parse(line) as { watch?: string; tookMs?: number })
  const took = said.find(({ watch }) => watch === 'pods')?.tookMs
  if (took === undefined) throw new Error('the agent did not log how long the pods took')
  return took
}
