import type { Clock } from '../../base/clock.ts'
import type { Ack } from '../../rules/drain/ack.ts'
import type { Hook } from '../../rules/drain/drain.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Asked } from '../../rules/drain/seen.ts'
import { CannotVouch } from './cannot-vouch.ts'
import type { HoldRequest } from './holds.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Questions } from './questions.ts'
import { createHookWitnesses } from './hook-witnesses.ts'
import { saysThatItEnds } from '../../rules/drain/eligible.ts'

/** A hook that waits for its answer. */
export interface HeldHook {
  readonly hook: Hook
  /** The pod according to the caller's identity; later, according to the API server. */
  readonly pod: PodFact
  /** The API server's answer if the watch did not show an end. `true`: the pod ends; `false`: it stays; `undefined`: no answer yet. */
  readonly ends: boolean | undefined
  /** When the API server was asked about the pod. */
  readonly asked?: Asked | undefined
}

/** The held hooks. Only rounds answer them; otherwise a hook ends by its signal or a refusal. */
export interface Hooks {
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  held(): readonly HeldHook[]
  uids(): ReadonlySet<PodUid>
  answer(hook: Hook, ack: Ack): void
  /** The drain of this pod was undone: forgets the answers about its hooks, and asks the API server again, twice. */
  askAgain(uid: PodUid): void
  /** When the first hook of this pod arrived that no known end explains yet (`hook-witnesses.ts`). */
  witnessOf(pod: PodFact, now: Millis): Millis | undefined
}

interface HooksOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'verifyWatch'>
  readonly questions: Questions
  readonly clock: Clock
  /** The answer to a hook whose drain is proven already. `undefined`: the hook must be held. */
  readonly proven: (hook: Hook) => Ack | undefined
  /** A pod counts as staying only if the API server reports it a second time after this delay. */
  readonly statusDelayMs: number
  /** Requests a round, because something has changed. */
  readonly wake: () => void
}

/**
 * The wait before the API server is asked at all, in ms. Usually the watch event comes first, and hundreds of pods that end at the
 * same moment would cause as many needless requests.
 */
const WATCH_FIRST_MS = 5
/** Pauses between tries to ask the API server about one hook, in ms; in sum well below the shortest usual grace. */
const ASK_AGAIN_MS = [100, 400, 1000]
interface Entry extends HeldHook {
  readonly isOwn: boolean
  readonly resolve: (ack: Ack) => void
  readonly reject: (reason: Error) => void
  /** Aborts when the hook is no longer held. */
  readonly over: AbortSignal
}

export function createHooks({ cluster, questions, clock, proven, statusDelayMs, wake }: HooksOptions): Hooks {
  const entries = new Map<string, Entry>()
  const witnesses = createHookWitnesses()

  /**
   * A hook for a pod without a known end has one of three causes. The hook is early (an httpGet hook can arrive before the watch event). Or
   * the kubelet began the end, and writes the status later. Or a container restarts, which calls preStop too. The API server knows of an
   * early hook's end at once, and of the kubelet's end after a while.
   * @param since when the hook arrived, or when its drain was undone
   */
  const ask = async (entry: Entry, since: Millis): Promise<void> => {
    const { hook, over: signal } = entry
    const { id } = hook
    await clock.sleep(WATCH_FIRST_MS, signal).catch(() => {})
    const first = await staysNow(entry)
    if (!first) return
    const due = since + statusDelayMs
    if (first.at >= due) return learn(id, { ...first, ends: false, asked: { at: first.at, again: first.at } })
    await clock.sleep(Math.max(0, due - clock.now()), signal).catch(() => {})
    const again = await staysNow(entry)
    if (again) learn(id, { ...again, ends: false, asked: { at: first.at, again: again.at } })
  }

  /** The pod as the API server has it, if it does not end. `undefined`: the pod ends, or an answer is no longer needed or possible. */
  const staysNow = async ({
    hook: { id },
    pod,
    isOwn,
    over: signal
  }: Entry): Promise<{ readonly pod: PodFact; readonly at: Millis } | undefined> => {
    if (!entries.has(id)) return undefined
    if (knownToEnd(pod)) return itEnds(id, cluster.pods.get(pod.uid) ?? pod)
    let cause: unknown
    for (const pause of [...ASK_AGAIN_MS, undefined]) {
      // An answer is as old as its question: the kubelet's report may come between them.
      const at = clock.now()
      try {
        const current = await questions.pod(isOwn ? 'pod' : 'caller', pod, signal)
        const same = current?.uid === pod.uid ? current : undefined
        if (same && !saysThatItEnds(same)) return { pod: same, at }
        cluster.verifyWatch('pods')
        return itEnds(id, same ?? pod)
      } catch (err) {
        if (signal.aborted) return undefined
        if (knownToEnd(pod)) return itEnds(id, pod)
        cause = err
        if (pause !== undefined) await clock.sleep(pause, signal).catch(() => {})
      }
    }
    const why = 'the API server could not be asked whether this pod ends, and the watch does not say so'
    entries.get(id)?.reject(new CannotVouch(why, { cause }))
    return undefined
  }
  const itEnds = (id: string, pod: PodFact): undefined => {
    learn(id, { pod, ends: true })
  }
  const learn = (id: string, { pod, ends, asked }: Pick<HeldHook, 'pod' | 'ends' | 'asked'>) => {
    const entry = entries.get(id)
    if (entry) entries.set(id, { ...entry, pod, ends, asked })
    wake()
  }
  const knownToEnd = (pod: PodFact) => saysThatItEnds(cluster.pods.get(pod.uid) ?? pod)
  const recheck = (entry: Entry, since: Millis) => {
    entries.set(entry.hook.id, { ...entry, ends: undefined, asked: undefined })
    witnesses.add(entry.hook, cluster.pods.get(entry.pod.uid) ?? entry.pod)
    void ask(entry, since)
  }

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
        const entry: Entry = {
          hook,
          pod,
          isOwn,
          ends: true,
          resolve: ack => (end(), resolve(ack)),
          reject: reason => (end(), reject(reason)),
          over: over.signal
        }
        if (knownToEnd(pod)) entries.set(hook.id, entry)
        else recheck(entry, hook.receivedAt)
        wake()
      })
    },
    held: () => [...entries.values()],
    uids: () => new Set([...entries.values()].map(({ pod }) => pod.uid)),
    witnessOf: (pod, now) => witnesses.at(pod, now),
    answer: (hook, ack) => entries.get(hook.id)?.resolve(ack),
    askAgain(uid) {
      // A hook whose question is still open needs no second question.
      const known = [...entries.values()].filter(({ hook, ends }) => hook.uid === uid && ends !== undefined)
      for (const entry of known) recheck(entry, clock.now())
    }
  }
}
