import type { Ack, Hook, Stop } from '../../rules/drain/drain.ts'
import { runOf, saysThatItEnds } from '../../rules/drain/eligible.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { HoldRequest } from './reply.ts'
import type { Clock } from '../../base/clock.ts'

/** A hook that waits for its answer. */
export interface HeldHook {
  readonly hook: Hook
  /** The pod according to the caller's identity. */
  readonly pod: PodFact
  /** The pod itself has called: the container is about to stop. */
  readonly stop: Stop | undefined
}

/** The held hooks. Only rounds answer them; otherwise a hook ends by its signal. */
export interface Hooks {
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  held(): readonly HeldHook[]
  uids(): ReadonlySet<PodUid>
  answer(hook: Hook, ack: Ack): void
}

interface HooksOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'verifyWatch'>
  /** See `createFreshWatch`. */
  readonly freshWatch: (signal: AbortSignal) => Promise<void>
  /** The answer to a hook whose drain is proven already. `undefined`: the hook must be held. */
  readonly proven: (hook: Hook) => Ack | undefined
  /** Requests a round, because something has changed. */
  readonly wake: () => void
}

export function createHooks({ cluster, freshWatch, proven, wake }: HooksOptions): Hooks {
  const entries = new Map<string, HeldHook & { readonly resolve: (ack: Ack) => void }>()

  return {
    hold({ hook, pod, isOwn = false }, signal) {
      const ack = proven(hook)
      if (ack) return Promise.resolve(ack)
      return new Promise<Ack>((resolve, reject) => {
        const over = new AbortController()
        const end = () => {
          over.abort()
          entries.delete(hook.id)
          signal.removeEventListener('abort', away)
        }
        const away = () => {
          end()
          reject(signal.reason as Error)
        }
        if (signal.aborted) return away()
        signal.addEventListener('abort', away, { once: true })
        const { container, receivedAt: at } = hook
        const latest = cluster.pods.get(pod.uid) ?? pod
        const stop = isOwn ? { container, run: runOf(latest, container), at } : undefined
        entries.set(hook.id, { hook, pod, stop, resolve: ack => (end(), resolve(ack)) })
        // A pod that ends was deleted before its hook called. So a watch that does not show that may be behind.
        const doubt = () => void (over.signal.aborted || cluster.verifyWatch('pods'))
        if (!saysThatItEnds(latest)) void freshWatch(over.signal).catch(doubt)
        wake()
      })
    },
    held: () => [...entries.values()],
    uids: () => new Set([...entries.values()].map(({ pod }) => pod.uid)),
    answer: (hook, ack) => entries.get(hook.id)?.resolve(ack)
  }
}

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
