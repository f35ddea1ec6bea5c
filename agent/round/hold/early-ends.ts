import type { Clock } from '../../base/clock.ts'
import { saysThatItEnds } from '../../rules/drain/eligible.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Questions } from './questions.ts'

/** How long the agent waits for the pod's own watch event before it asks, in ms. */
const WATCH_FIRST_MS = 100
/** The pause until the agent asks about the same pod again, in ms, if a slice still marks it. */
const AGAIN_MS = 5000
/** The most pods for which a question is remembered. */
const MOST = 1000

/**
 * Handles pods that an EndpointSlice marks as terminating and the watch of pods does not, because that watch may be behind. A writer of
 * slices can mark any pod, even one that serves. So the slice alone begins no drain: the agent first asks the API server for the pod.
 */
export function createEarlyEnds(
  cluster: Pick<Cluster, 'pods' | 'slices' | 'verifyWatch'>,
  questions: Questions,
  clock: Clock
): { look(): void; stop(): void } {
  const stopped = new AbortController()
  const asked = new Map<PodUid, Millis>()
  const isEarly = (pod: PodFact | undefined): pod is PodFact =>
    pod !== undefined && !saysThatItEnds(pod) && cluster.slices.terminating(pod)

  const ask = async ({ uid }: PodFact): Promise<void> => {
    await clock.sleep(WATCH_FIRST_MS, stopped.signal)
    const pod = cluster.pods.get(uid)
    if (!isEarly(pod)) return
    const current = await questions.pod('slice', pod, stopped.signal)
    if (current?.uid !== uid || saysThatItEnds(current)) cluster.verifyWatch('pods')
  }
  return {
    look() {
      for (const uid of asked.keys()) if (!isEarly(cluster.pods.get(uid))) asked.delete(uid)
      const now = clock.now()
      for (const pod of cluster.slices.terminatingPods(cluster.pods)) {
        const { uid } = pod
        if (!isEarly(pod) || now < (asked.get(uid) ?? 0) + AGAIN_MS) continue
        if (!asked.has(uid) && asked.size >= MOST) return
        asked.set(uid, now)
        // Without an answer the watch of pods shows the end, or a later round asks again.
        void ask(pod).catch(() => {})
      }
    },
    stop: () => stopped.abort(new Error('stopped'))
  }
}
