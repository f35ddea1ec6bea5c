import { setTimeout as wait } from 'node:timers/promises'
import type { LoadResult } from '../../sandbox/load/options.ts'
import { now } from '../../sandbox/now.ts'
import { eventually } from '../plugin/eventually.ts'
import { answers } from './agent.ts'
import { hooksIn, type HookCall } from './hooks.ts'
import { NAMESPACE } from './objects/workload.ts'
import type { PodRecord } from './pods.ts'
import type { Workload, WorkloadLoad, World } from './world.ts'

/** What clients and pods saw while something was done to a workload. */
export interface Observed {
  readonly load: LoadResult
  /** When the first requests failed: ms since the epoch. */
  readonly failedAt: readonly number[]
  /** The preStop hooks that returned meanwhile. */
  readonly hooks: readonly HookCall[]
  /** Until what was done was done: for a rollout until all new pods are available, in s. */
  readonly seconds: number
  /** Until all that end were gone, in s. */
  readonly goneSeconds: number
  /** The pods that have ended. */
  readonly ended: readonly PodRecord[]
  /** How the agents have answered meanwhile, by `result/evidence`. */
  readonly answers: Readonly<Record<string, number>>
}

/** Requests that have been answered before something is done. */
const WARM = 100
/** How long the load goes on, in ms: longer than it takes the owner to hear of the last change. */
const SETTLE_MS = 2500
const GONE_MS = 90_000

/** Sends requests while `act` is done, until every pod that it ends is gone and a while after. */
export async function underLoad(
  world: World,
  workload: Workload,
  act: () => Promise<void>,
  load: WorkloadLoad = {}
): Promise<Observed> {
  const { name } = workload.options
  const running = workload.startLoad(load)
  try {
    await eventually('the load is on', () => (running.counts()?.requests ?? 0) >= WARM)
    const before = new Set(workload.pods().filter(({ goneAt }) => goneAt))
    const hooksBefore = hooksOf(world, name).length
    const answersBefore = await answers(world)
    const begun = Date.now()
    await act()
    const done = Date.now()
    const ending = () => workload.pods().filter(pod => pod.endingAt && !before.has(pod))
    await eventually('what ends is gone', () => ending().every(({ goneAt }) => goneAt), GONE_MS)
    const ended = ending()
    const last = Math.max(begun, ...ended.map(({ goneAt = 0 }) => goneAt))
    await wait(SETTLE_MS)
    const result = await running.stop()
    return {
      load: result,
      failedAt: result.failures.map(({ at }) => Date.now() - (now() - at)),
      hooks: hooksOf(world, name).slice(hooksBefore),
      seconds: (done - begun) / 1000,
      goneSeconds: (last - begun) / 1000,
      ended,
      answers: more(answersBefore, await answers(world))
    }
  } finally {
    await running.close()
  }
}

/** What has come to the counts; what an agent counted that is gone is lost. */
export const more = (before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(after)
      .map(([key, count]) => [key, count - (before[key] ?? 0)] as const)
      .filter(([, count]) => count > 0)
  )

/** The hooks of a workload that have returned. */
export const hooksOf = ({ cluster }: World, name: string): readonly HookCall[] =>
  hooksIn(cluster.kubelets.map(({ log }) => log)).filter(({ pod }) => pod.startsWith(`${NAMESPACE}/${name}-`))

/** `kubectl rollout restart`, and until the new pods are available. */
export async function restart({ kube }: World, { target }: Workload): Promise<void> {
  await kube('rollout', 'restart', target, `--namespace=${NAMESPACE}`)
  await kube('rollout', 'status', target, `--namespace=${NAMESPACE}`, '--timeout=120s')
}

/** One line for the log: what a reader wants to know of it. */
export const inWords = ({ load, hooks, seconds, goneSeconds, ended, answers }: Observed): string => {
  const times = hooks.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const p50 = times[Math.floor(times.length / 2)]
  const said =
    p50 === undefined
      ? ''
      : `, hook p50 ${p50.toFixed(0)} ms, max ${times.at(-1)?.toFixed(0)} ms, ${JSON.stringify(answers)}`
  return `${load.failed} of ${load.requests} requests failed, done in ${seconds.toFixed(1)} s, ${ended.length} pods gone after ${goneSeconds.toFixed(1)} s${said}`
}
