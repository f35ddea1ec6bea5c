import type { Clock } from '../../base/clock.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'

/** How long the watch may take to catch up, in ms. */
const LIMIT_MS = 1000
/** Pause between two requests, in ms. */
const PAUSE_MS = 100

/**
 * Makes a function that waits until the watch of pods has shown all that the API server had at the time of the call. All callers share one
 * small request at a time. So an unknown address costs the API server next to nothing, and the answer is never old.
 *
 * @returns a function that throws the signal's reason, or an Error if the watch is behind
 */
export function createFreshWatch(
  cluster: Pick<Cluster, 'assurePods' | 'podsAssuredAt' | 'onChange'>,
  clock: Clock
): (signal: AbortSignal) => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  /** The next request: not sent yet, so more callers can share it. */
  let next: Promise<void> | undefined

  const look = async (): Promise<void> => {
    const from = clock.now()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const check = () => {
      if (cluster.podsAssuredAt() >= from) resolve()
    }
    const off = cluster.onChange(check)
    const cancel = clock.alarm(from + LIMIT_MS, () => reject(new Error('the watch of pods is behind')))
    cluster.assurePods()
    check()
    try {
      await promise
    } finally {
      off()
      cancel()
    }
  }
  const begin = async (): Promise<void> => {
    await running
    next = undefined
    const looking = look()
    running = looking.catch(() => {}).then(() => clock.sleep(PAUSE_MS))
    await looking
  }
  return signal => unlessAborted((next ??= begin()), signal)
}

/** A shared answer; rejects with the signal's reason once this caller does not wait any more. */
async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
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

/** How long one request may take, in ms: a healthy API server answers in one or two. */
const ASK_MS = 1000

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
