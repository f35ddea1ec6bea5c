import type { LoadResult } from '../../sandbox/load/options.ts'
import { now } from '../../sandbox/now.ts'
import { eventually } from '../plugin/eventually.ts'
import { answersTo, type Answers } from './agent.ts'
import { hooksIn, type HookCall } from './hooks.ts'
import { NAMESPACE } from './objects/workload.ts'
import type { PodRecord } from './pods.ts'
import type { Workload, WorkloadLoad, World } from './world.ts'

/** The observations of clients and pods during an action on a workload. */
export interface Observed {
  readonly load: LoadResult
  /** When the first requests failed: ms since the epoch. */
  readonly failedAt: readonly number[]
  /** The preStop hooks that returned during the action. */
  readonly hooks: readonly HookCall[]
  /** The duration of the action, in s; for a rollout, until all new pods are available. */
  readonly seconds: number
  /** The time until all ending pods were gone, in s. */
  readonly goneSeconds: number
  /** The pods that have ended. */
  readonly ended: readonly PodRecord[]
  /** The agents' answers to these pods during the action. */
  readonly answers: Answers
}

/** An action on a workload. */
export interface Action {
  /** How many pods it ends. */
  readonly ends: number
  readonly act: () => Promise<void>
  /** The app whose pods the upstream lists at the end; default: the workload's own. */
  readonly listed?: string
}

/** How many requests are sent before the action. */
const WARM = 100
/** How many requests are sent after the owner's last write. */
const AFTER = 150

/** Sends requests during the action, and until every ended pod is gone and the owner has removed it. Then sends `AFTER` more. */
export async function underLoad(
  world: World,
  workload: Workload,
  { ends, act, listed }: Action,
  load: WorkloadLoad = {}
): Promise<Observed> {
  const { name } = workload.options
  const running = workload.startLoad(load)
  try {
    const sent = () => running.counts()?.requests ?? 0
    await eventually('the load is on', () => sent() >= WARM)
    const before = new Set(workload.pods().filter(({ goneAt }) => goneAt))
    const hooksBefore = hooksOf(world, name).length
    const answersBefore = await answersTo(world, name)
    const begun = Date.now()
    await act()
    const done = Date.now()
    const ending = () => workload.pods().filter(pod => pod.endingAt && !before.has(pod))
    const areGone = () => ending().length >= ends && ending().every(({ goneAt }) => goneAt)
    await eventually(`${ends} pods are gone`, areGone)
    await eventually('the owner has written the rest', () => workload.isListed(listed))
    const enough = sent() + AFTER
    await eventually('the load has gone on', () => sent() >= enough)
    const result = await running.stop()
    const ended = ending()
    const last = Math.max(begun, ...ended.map(({ goneAt = 0 }) => goneAt))
    return {
      load: result,
      failedAt: result.failures.map(({ at }) => Date.now() - (now() - at)),
      hooks: hooksOf(world, name).slice(hooksBefore),
      seconds: (done - begun) / 1000,
      goneSeconds: (last - begun) / 1000,
      ended,
      answers: more(answersBefore, await answersTo(world, name))
    }
  } finally {
    await running.close()
  }
}

/** Returns how much each count has increased. The counts of an agent that has ended are lost. */
const more = (before: Answers, after: Answers): Answers =>
  Object.fromEntries(
    Object.entries(after)
      .map(([key, count]) => [key, count - (before[key] ?? 0)] as const)
      .filter(([, count]) => count > 0)
  )

/** Returns the hooks of a workload that have returned. */
export const hooksOf = ({ cluster }: World, name: string): readonly HookCall[] =>
  hooksIn(cluster.kubelets.map(({ log }) => log)).filter(({ pod }) => pod.startsWith(`${NAMESPACE}/${name}-`))

/** Returns a summary for the log, in one line. */
export const inWords = ({ load, hooks, seconds, goneSeconds, ended, answers }: Observed): string => {
  const times = hooks.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const p50 = times[Math.floor(times.length / 2)]
  const said =
    p50 === undefined
      ? ''
      : `, hook p50 ${p50.toFixed(0)} ms, max ${times.at(-1)?.toFixed(0)} ms, ${JSON.stringify(answers)}`
  return `${load.failed} of ${load.requests} requests failed, done in ${seconds.toFixed(1)} s, ${ended.length} pods gone after ${goneSeconds.toFixed(1)} s${said}`
}
