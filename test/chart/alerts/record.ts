import { setTimeout } from 'node:timers/promises'
import type { TestPod } from '../../build/pods.ts'
import { startRig, type Rig } from '../../build/rig.ts'

/** A scrape: `name{labels}` as the agent wrote it, and the value. */
export type Scrape = ReadonlyMap<string, number>

/** A real agent whose `/metrics` were read before, during and after a rolling update. */
export interface Recorded {
  /** The last text of `/metrics`. */
  readonly text: string
  /** Values in promtool's form, one for each `STEP_S`; the last one stays until the end of the test. */
  readonly series: Readonly<Record<string, string>>
}

/** The time from one value to the next, in s. */
export const STEP_S = 15
/** How many steps a test lasts: twenty minutes. */
export const STEPS = 80

let recording: Promise<Recorded> | undefined

/** Records a rolling update of three pods behind two gateways with the plugin, once for all tests. */
export const recordRollout = (): Promise<Recorded> => (recording ??= record())

async function record(): Promise<Recorded> {
  const rig = await startRig({ gateways: 2, barrier: true })
  try {
    const old = [0, 1, 2].map(i => rig.pod(`web-1-${i}`))
    rig.upstream('web', old)
    await rig.settled('web', old.length)
    await arrived(rig, old.length)
    const texts = [await rig.agent.metrics()]
    const times = [Date.now()]
    const look = async () => {
      texts.push(await rig.agent.metrics())
      times.push(Date.now())
    }
    const fresh: TestPod[] = []
    for (const [i, pod] of old.entries()) {
      fresh.push(rig.pod(`web-2-${i}`))
      rig.upstream('web', [...old.slice(i), ...fresh])
      await rig.settled()
      const held = rig.drain(pod)
      await look()
      const { body } = await held
      if (body.evidence !== 'barrier') throw new Error(`no good rollout: ${JSON.stringify(body)}`)
      await look()
      rig.gone(pod)
      await arrived(rig, old.length + fresh.length)
      await look()
    }
    const scrapes = texts.map(scrapeOf)
    const keys = scrapes.at(-1)?.keys() ?? []
    return {
      text: texts.at(-1) ?? '',
      series: Object.fromEntries(keys.map(key => [key, valuesOf(key, scrapes, times)]))
    }
  } finally {
    await rig.close()
  }
}

/** Waits until the agent has seen this many arrivals. If it saw a pod before any holder listed the pod, this takes some seconds. */
async function arrived(rig: Rig, pods: number): Promise<void> {
  while (arrivalsOf(await rig.agent.metrics()) < pods) await setTimeout(100)
}

/** Returns how many pods the agent has seen arrive at every gateway. */
const arrivalsOf = (text: string): number =>
  scrapeOf(text).get('apisix_drain_sync_lag_seconds_count{direction="arrival"}') ?? 0

const scrapeOf = (text: string): Scrape =>
  new Map(
    [...text.matchAll(/^([a-z]\S*?(?:\{.*\})?) (\S+)$/gm)].map(([, key = '', value]) => [key, Number(value)])
  )

/** Returns the values of a series in promtool's form. A test begins at time 0, so each timestamp is moved to keep its age. */
function valuesOf(key: string, scrapes: readonly Scrape[], times: readonly number[]): string {
  const isTime = /_timestamp_seconds\b/.test(key)
  const values = scrapes.map((scrape, i) => {
    const value = scrape.get(key)
    if (value === undefined) return '_'
    return String(isTime ? i * STEP_S - ((times[i] ?? 0) / 1000 - value) : value)
  })
  const last = values.at(-1) ?? '_'
  return `${values.join(' ')} ${Number(last) + (isTime ? STEP_S : 0)}+${isTime ? STEP_S : 0}x${STEPS - values.length}`
}
