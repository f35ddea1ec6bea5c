import PQueue from 'p-queue'
import type { Clock } from '../../base/clock.ts'
import type { PodFact } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'

/** The cause of a question: the pod itself (by its address), a caller that only names a pod, or an EndpointSlice. */
type Cause = 'pod' | 'caller' | 'slice'

/** Asks the API server about pods. Any caller and any slice can cause a question, so the number of requests is bounded. */
export interface Questions {
  /**
   * The pod as the API server has it at or after this moment. Equal questions that wait share one request.
   *
   * @throws the signal's reason; Error if there is no answer, or too many questions wait
   */
  pod(cause: Cause, name: ServiceName, signal: AbortSignal): Promise<PodFact | undefined>
}

/** How long one request may take, in ms: a healthy API server answers in one or two. */
const ASK_MS = 1000
/** The most requests for one cause, at once and in a second. Pods have the largest share, and the other causes cannot use it up. */
export const LIMITS: Readonly<Record<Cause, { readonly concurrency: number; readonly intervalCap: number }>> =
  {
    pod: { concurrency: 16, intervalCap: 400 },
    caller: { concurrency: 4, intervalCap: 100 },
    slice: { concurrency: 2, intervalCap: 20 }
  }
/** The most different questions of one cause that may wait. */
const MOST_WAITING = 1000

export function createQuestions(cluster: Pick<Cluster, 'fetchPod'>, clock: Clock): Questions {
  const lanes = {
    pod: createLane(cluster, clock, LIMITS.pod),
    caller: createLane(cluster, clock, LIMITS.caller),
    slice: createLane(cluster, clock, LIMITS.slice)
  }
  return { pod: (cause, name, signal) => unlessAborted(lanes[cause](name), signal) }
}

function createLane(
  cluster: Pick<Cluster, 'fetchPod'>,
  clock: Clock,
  limits: (typeof LIMITS)[Cause]
): (name: ServiceName) => Promise<PodFact | undefined> {
  const queue = new PQueue({ ...limits, interval: 1000 })
  const running = new Map<string, Promise<unknown>>()
  /** Questions whose request is not sent yet: a caller that joins now still gets a state from after its call. */
  const waiting = new Map<string, Promise<PodFact | undefined>>()
  return ({ namespace, name }) => {
    const key = `${namespace}/${name}`
    const known = waiting.get(key)
    if (known) return known
    if (waiting.size >= MOST_WAITING)
      return Promise.reject(new Error('too many questions to the API server wait already'))
    const begin = () => {
      waiting.delete(key)
      const answer = inTime(clock, signal => cluster.fetchPod(namespace, name, signal))
      const over = answer.then(
        () => running.delete(key),
        () => running.delete(key)
      )
      running.set(key, over)
      return answer
    }
    // A free queue would begin at once. The `then` delays that until the question is in `waiting`.
    const answer = (running.get(key) ?? Promise.resolve()).then(() => queue.add(begin))
    waiting.set(key, answer)
    return answer
  }
}

/** Runs with a signal that aborts after `ASK_MS`. */
export async function inTime<T>(clock: Clock, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const cancel = clock.alarm(clock.now() + ASK_MS, () =>
    late.abort(new Error(`no answer within ${ASK_MS} ms`))
  )
  try {
    return await run(late.signal)
  } finally {
    cancel()
  }
}

/** A shared answer; rejects with the signal's reason once this caller does not wait any more. */
export async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  answer.catch(() => {})
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([answer, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
