import type { Clock } from '../base/clock.ts'
import { saysThatItEnds } from '../drain/eligible.ts'
import type { Millis, PodFact, PodUid } from '../drain/facts.ts'
import type { Cluster } from '../facts/cluster.ts'
import type { Questions } from './questions.ts'

/** Time for the pod's own event, in ms. Usually it is on its way. */
const WATCH_FIRST_MS = 100
/** When the same pod is asked about again, in ms, if the slice still says so. */
const AGAIN_MS = 5000
/** Pods that are remembered as asked about. */
const MOST = 1000

/**
 * Pods that an EndpointSlice marks as terminating, and the watch of pods does not: that watch may be behind. Whoever may write slices could
 * claim so of a pod that serves, so the agent asks the API server for the pod. The stores learn its answer, and a drain begins only by that.
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
      const marked = cluster.slices.terminatingPods()
      for (const uid of asked.keys()) if (!marked.has(uid)) asked.delete(uid)
      const now = clock.now()
      for (const uid of marked) {
        const pod = cluster.pods.get(uid)
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
