import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Holds } from './holds.ts'
import type { Questions } from './questions.ts'

/** How long a name counts as unknown to the API server, in ms; less if the watch shows a pod of that name. */
const ABSENT_MS = 1000
/** The most unknown names that are remembered; the oldest are forgotten first. */
const MOST = 1000

/**
 * Finds a pod by name, in the watch or else at the API server. The watch may lack the pod.
 */
export function createFindPod(
  cluster: Pick<Cluster, 'pods' | 'isWatched'>,
  questions: Questions,
  clock: Clock
): Holds['find'] {
  /** When the API server last had no pod of this name; the oldest first. */
  const absent = new Map<string, Millis>()
  return async (namespace, name, signal) => {
    const known = cluster.pods.byName(namespace, name)
    if (known) return known
    // The agent would never see the end of a pod that no watch covers, so its drain would never end.
    if (!cluster.isWatched(namespace)) return undefined
    const key = `${namespace}/${name}`
    if (clock.now() < (absent.get(key) ?? -Infinity) + ABSENT_MS) return undefined
    const found = await questions.pod('caller', { namespace, name }, signal)
    absent.delete(key)
    if (!found) absent.set(key, clock.now())
    for (const oldest of absent.keys()) {
      if (absent.size <= MOST) break
      absent.delete(oldest)
    }
    return found
  }
}
