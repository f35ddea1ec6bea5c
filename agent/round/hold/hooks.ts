import type { Ack, Hook, Stop } from '../../rules/drain/drain.ts'
import { runOf, saysThatItEnds } from '../../rules/drain/eligible.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { HoldRequest } from './reply.ts'

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
