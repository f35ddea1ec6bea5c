import { RESERVE, readOptions } from './annotations.ts'
import { formatDuration } from './duration.ts'
import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings } from './seen.ts'

type BudgetSettings = Pick<DrainSettings, 'reserveMs' | 'serverBehindMs'>

/**
 * The latest time for the answer to the hook (ms, the agent's clock). `since` is when the agent first saw that the pod ends: its
 * deletion if it saw that, otherwise the first witness.
 *
 *     since                      deadline            end of the grace
 *       |---------- hold ------------|----- reserve -----| SIGKILL
 *
 * The end is the earlier of two bounds, because `deletionTimestamp` is by the API server's clock and `since` by the agent's:
 * - `deletionTimestamp` itself. It is cut to whole seconds, so it is up to a second early, never late. Alone, this bound would be late by
 *   the time that the API server's clock is ahead of the agent's.
 * - `since` + the grace. No event comes before its commit, so this bound is late only by the delay of the agent's watch (milliseconds),
 *   whatever the clocks show. Alone, this bound would be late for an agent that started in the middle of a drain.
 *
 * The first bound is corrected by the measured time that the API server's clock is behind the agent's. Otherwise, if that clock were behind
 * by the whole grace, every answer would be due at once, before anything is proved. A second, shorter delete moves both bounds: Kubernetes
 * counts the new grace from the first delete. Ends that only the kubelet knows of (eviction under pressure, host shutdown) have no
 * deletionTimestamp, so the grace of the spec counts for them.
 *
 * The result is never before `since`: if the grace is not longer than the reserve, the answer is due at once.
 */
export function deadlineOf(pod: PodFact, since: Millis, settings: BudgetSettings): Millis {
  return Math.max(since, endOfGrace(pod, since, settings.serverBehindMs) - reserveOf(pod, settings))
}

/** When the kubelet kills a pod whose end was first known at `since`: the earlier of the two bounds above (ms, the agent's clock). */
export function endOfGrace(pod: PodFact, since: Millis, serverBehindMs = 0): Millis {
  const deletionAt = pod.deletionAt === undefined ? Infinity : pod.deletionAt + serverBehindMs
  return Math.min(deletionAt, since + (pod.deletionGraceMs ?? pod.graceMs))
}

/**
 * Problems with the time that a pod gives its hook, for `doctor`; empty if there are none. `needMs`: how long any proof takes.
 */
export function budgetProblems(
  pod: PodFact,
  { needMs: need = 0, ...settings }: BudgetSettings & { readonly needMs?: number }
): string[] {
  const options = readOptions(pod.annotations)
  if (options.skip) return [...options.problems]
  const reserve = reserveOf(pod, settings)
  const hold = pod.graceMs - reserve
  const grace = `terminationGracePeriodSeconds (${formatDuration(pod.graceMs)})`
  const lower = options.reserveMs === undefined ? 'drain.reserve' : RESERVE
  const problems = [...options.problems]
  if (hold <= 0)
    problems.push(
      `the reserve (${formatDuration(reserve)}) leaves nothing of ${grace}, so its hooks are answered at once: raise the grace or lower ${lower}`
    )
  else if (hold < need)
    problems.push(
      `a hook is held for at most ${formatDuration(hold)}, but a proof takes ${formatDuration(need)}: raise ${grace} or lower ${lower}`
    )
  return problems
}

/** The part of its grace that this pod keeps for its own shutdown, in ms. */
export const reserveOf = (pod: PodFact, settings: Pick<DrainSettings, 'reserveMs'>): number =>
  readOptions(pod.annotations).reserveMs ?? settings.reserveMs
