import type { Hook } from '../../rules/drain/drain.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'

/** How many hooks are kept; the oldest is dropped first. */
const MOST = 10_000

/**
 * Hooks that arrived before any other sign of their pod's end. A kubelet ends a pod by itself if its host shuts down, or lacks memory or
 * disk. It then runs the hook first and writes the status later: much later with many pods (kubelet 1.36, `killPodNow` and the status
 * manager). So such a hook stays a witness for as long as the grace may last, answered or not.
 */
interface HookWitnesses {
  add(hook: Hook, pod: PodFact): void
  /** When the first hook of this pod arrived. `undefined`: none within the grace, or a container has restarted since. */
  at(pod: PodFact, now: Millis): Millis | undefined
}

export function createHookWitnesses(): HookWitnesses {
  /** The pods in the order of their latest hooks, the oldest first. `at` is the time of the first hook. */
  const heard = new Map<PodUid, { readonly at: Millis; readonly until: Millis; readonly restarts: number }>()
  const at: HookWitnesses['at'] = ({ uid, restarts }, now) => {
    const known = heard.get(uid)
    return known && now < known.until && restarts <= known.restarts ? known.at : undefined
  }
  return {
    add({ receivedAt }, pod) {
      const first = at(pod, receivedAt) ?? receivedAt
      heard.delete(pod.uid)
      heard.set(pod.uid, { at: first, until: receivedAt + pod.graceMs, restarts: pod.restarts })
      for (const [uid, { until }] of heard) {
        if (heard.size <= MOST && receivedAt < until) break
        heard.delete(uid)
      }
    },
    at
  }
}
