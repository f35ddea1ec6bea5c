import { RESERVE, readOptions } from './annotations.ts'
import { formatDuration } from './duration.ts'
import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings } from './seen.ts'

type BudgetSettings = Pick<DrainSettings, 'reserveMs' | 'serverBehindMs'>

/**
 * When the answer to the hook must have been sent (ms, our clock). `since` is when we first saw that the pod ends: its
 * deletion, where that was seen, else the first witness.
 *
 *     since                      deadline            end of the grace
 *       |---------- hold ------------|----- reserve -----| SIGKILL
 *
 * The end is the earlier of two bounds, because `deletionTimestamp` is the API server's clock and `since` is ours:
 * - `deletionTimestamp` itself. It is cut to whole seconds, so up to a second early, never late. It alone would be late
 *   by as much as the API server's clock is ahead of ours.
 * - `since` + the grace. No event comes before its commit, so this bound is late by the delay of our watch only
 *   (milliseconds), whatever the clocks say. It alone would be late for an agent that started in the middle of a drain.
 *
 * The first bound is moved by how far the API server's clock is behind ours, as its answers show it: unmoved, a server behind
 * by the grace would make every answer due at once, before anything is proved. A second, shorter delete moves both bounds: Kubernetes counts the new grace from the
 * first delete. Ends that only the kubelet knows of (eviction under pressure, host shutdown) have no deletionTimestamp;
 * there the grace of the spec counts.
 *
 * Never before `since`: where the grace is not longer than the reserve, the answer is due at once.
 */
export function deadlineOf(pod: PodFact, since: Millis, settings: BudgetSettings): Millis {
  return Math.max(since, endOfGrace(pod, since, settings.serverBehindMs) - reserveOf(pod, settings))
}

/** When the kubelet kills a pod that was first known to end at `since`: the earlier of the two bounds above (ms, our clock). */
export function endOfGrace(pod: PodFact, since: Millis, serverBehindMs = 0): Millis {
  const deletionAt = pod.deletionAt === undefined ? Infinity : pod.deletionAt + serverBehindMs
  return Math.min(deletionAt, since + (pod.deletionGraceMs ?? pod.graceMs))
}

/**
 * What is wrong with the time a pod gives to its hook, for `doctor`; empty where nothing is. `needMs` is how long the
 * weakest evidence that counts has to be waited for in the worst case (the floor, or the settle time).
 */
export function budgetProblems(
  pod: PodFact,
  settings: BudgetSettings & { readonly needMs?: number }
): string[] {
  const options = readOptions(pod.annotations)
  if (options.skip) return [...options.problems]
  const reserve = reserveOf(pod, settings)
  const hold = pod.graceMs - reserve
  const need = settings.needMs ?? 0
  const grace = `terminationGracePeriodSeconds (${formatDuration(pod.graceMs)})`
  const lower = options.reserveMs === undefined ? 'drain.reserve' : RESERVE
  if (hold <= 0) {
    return [
      ...options.problems,
      `the reserve (${formatDuration(reserve)}) leaves nothing of ${grace}, so its hooks are answered at once: raise the grace or lower ${lower}`
    ]
  }
  if (hold < need) {
    return [
      ...options.problems,
      `a hook is held for at most ${formatDuration(hold)}, but the evidence may take ${formatDuration(need)}: raise ${grace} or lower ${lower}`
    ]
  }
  return [...options.problems]
}

/** What this pod keeps of its grace for its own shutdown, in ms. */
export const reserveOf = (pod: PodFact, settings: Pick<DrainSettings, 'reserveMs'>): number =>
  readOptions(pod.annotations).reserveMs ?? settings.reserveMs
