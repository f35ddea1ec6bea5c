import type { Clock } from '../clock.ts'
import type { Ack } from '../drain/ack.ts'
import type { Hook } from '../drain/drain.ts'
import type { PodFact, PodUid } from '../drain/facts.ts'
import type { Log } from '../log.ts'
import { CannotVouch } from '../serve/cannot-vouch.ts'
import type { HoldRequest } from '../serve/holds.ts'
import type { Cluster } from '../watch/cluster.ts'

/** A hook that waits for its answer. */
export interface HeldHook {
  readonly hook: Hook
  /** The pod as the caller's identity showed it, or as the API server then told. */
  readonly pod: PodFact
  /** What the API server said when the watch did not know of an end: it ends, it stays; `undefined` = not asked yet. */
  readonly ends: boolean | undefined
}

/** The hooks that are being held. A round reads them and answers them; nothing else does. */
export interface Hooks {
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  held(): readonly HeldHook[]
  uids(): ReadonlySet<PodUid>
  answer(hook: Hook, ack: Ack): void
}

export interface HooksOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'fetchPod' | 'doubt'>
  readonly clock: Clock
  readonly log: Log
  /** The answer to a hook that needs no look: its drain is proven. */
  readonly proven: (hook: Hook) => Ack | undefined
  /** Something changed: look again. */
  readonly wake: () => void
}

/**
 * Before the API server is asked at all, in ms: as a rule the watch event is on its way, and hundreds of pods that end in the
 * same moment would be as many needless questions.
 */
const WATCH_FIRST_MS = 5
/** Pauses between tries to ask the API server about one hook, in ms: together well below the shortest usual grace. */
const ASK_AGAIN_MS = [100, 400, 1000]
/** How long one such try may take, in ms: a healthy API server answers in one or two. */
const ASK_MS = 1000

interface Entry extends HeldHook {
  readonly resolve: (ack: Ack) => void
  readonly reject: (reason: Error) => void
}

export function createHooks({ cluster, clock, log, proven, wake }: HooksOptions): Hooks {
  const entries = new Map<string, Entry>()

  /**
   * A hook for a pod that the watch does not know to end is either early (an httpGet hook can come before the watch
   * event) or a container restart, which calls preStop too, with no deletionTimestamp. Only the API server knows which.
   */
  const ask = async (id: string, pod: PodFact, signal: AbortSignal): Promise<void> => {
    await clock.sleep(WATCH_FIRST_MS, signal).catch(() => {})
    if (!entries.has(id)) return
    if (knownToEnd(pod)) return learn(id, { pod: cluster.pods.get(pod.uid) ?? pod, ends: true })
    for (const pause of [...ASK_AGAIN_MS, undefined]) {
      try {
        const current = await bounded(clock, ASK_MS, signal, limited =>
          cluster.fetchPod(pod.namespace, pod.name, limited)
        )
        const same = current?.uid === pod.uid ? current : undefined
        const ends = same === undefined || saysThatItEnds(same)
        if (ends) cluster.doubt('pods')
        learn(id, { pod: same ?? pod, ends })
        return
      } catch (err) {
        if (signal.aborted) return
        if (knownToEnd(pod)) return learn(id, { pod, ends: true })
        log.warn(
          { err, pod: pod.name, namespace: pod.namespace },
          'could not ask the API server about a hook'
        )
        if (pause !== undefined) await clock.sleep(pause, signal).catch(() => {})
      }
    }
    entries
      .get(id)
      ?.reject(
        new CannotVouch(
          'the API server could not be asked whether this pod ends, and the watch does not say so'
        )
      )
  }
  const learn = (id: string, news: Pick<HeldHook, 'pod' | 'ends'>) => {
    const entry = entries.get(id)
    if (entry) entries.set(id, { ...entry, ...news })
    wake()
  }
  const knownToEnd = (pod: PodFact) => saysThatItEnds(cluster.pods.get(pod.uid) ?? pod)

  return {
    hold({ hook, pod }, signal) {
      const ack = proven(hook)
      if (ack) return Promise.resolve(ack)
      return new Promise<Ack>((resolve, reject) => {
        const end = () => {
          entries.delete(hook.id)
          signal.removeEventListener('abort', away)
        }
        const away = () => {
          end()
          reject(signal.reason as Error)
        }
        if (signal.aborted) return away()
        signal.addEventListener('abort', away, { once: true })
        const known = knownToEnd(pod)
        entries.set(hook.id, {
          hook,
          pod,
          ends: known ? true : undefined,
          resolve: ack => (end(), resolve(ack)),
          reject: reason => (end(), reject(reason))
        })
        if (!known) void ask(hook.id, pod, signal)
        wake()
      })
    },
    held: () => [...entries.values()],
    uids: () => new Set([...entries.values()].map(({ pod }) => pod.uid)),
    answer: (hook, ack) => entries.get(hook.id)?.resolve(ack)
  }
}

/** Runs with a signal that also aborts after `ms`. */
async function bounded<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const late = new AbortController()
  const cancel = clock.alarm(clock.now() + ms, () => late.abort(new Error(`no answer within ${ms} ms`)))
  try {
    return await run(AbortSignal.any([signal, late.signal]))
  } finally {
    cancel()
  }
}

/** Kubelet-local ends (host shutdown, eviction under pressure) have no deletionTimestamp, only DisruptionTarget. */
function saysThatItEnds(pod: PodFact): boolean {
  return (
    pod.deletionAt !== undefined ||
    pod.disruptionTarget ||
    pod.phase === 'Failed' ||
    pod.phase === 'Succeeded'
  )
}
