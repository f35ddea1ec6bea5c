import PQueue from 'p-queue'

import type { Clock } from '../base/clock.ts'
import type { Millis, PodFact } from '../rules/drain/facts.ts'
import type { Log } from '../base/log.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import type { ServiceName } from '../kubernetes/facts/slice-store.ts'

/** How long an answer of the API server may take, in ms, including the wait in the queue. */
const ASK_MS = 1000
/** Concurrent requests. To find an address, the API server scans all pods. */
const AT_ONCE = 16
/** Equal requests within this time, in ms, share one answer: a pod can be in dozens of holders. */
const FRESH_MS = 100

/**
 * Asks the API server, not the watches, about nodes that a write is about to remove. A silent or late watch shows neither that an
 * address has a new pod nor that a pod is ready again. `undefined` and `false`: no answer.
 */
export interface Asking {
  /** The pod of this name, if it exists: one object, at little cost. */
  pod(name: ServiceName): Promise<{ readonly pod: PodFact | undefined } | undefined>
  /** The pods that have this address. The API server scans all pods, by first address only (dual stack). */
  ownersOf(host: string): Promise<readonly PodFact[] | undefined>
  /** Updates the stores with a Service and its EndpointSlices. `false` also if the Service does not exist any more. */
  refresh(service: ServiceName): Promise<boolean>
}

interface AskingOptions {
  readonly cluster: Pick<Cluster, 'fetchPod' | 'fetchPodsByIp' | 'fetchService'>
  readonly clock: Clock
  readonly log: Log
}

export function createAsking({ cluster, clock, log }: AskingOptions): Asking {
  const questions = new PQueue({ concurrency: AT_ONCE })
  const asked = new Map<string, { readonly at: Millis; readonly answer: Promise<unknown> }>()

  const ask = async <T>(what: object, go: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> => {
    const late = new AbortController()
    const { signal } = late
    const cancel = clock.alarm(clock.now() + ASK_MS, () =>
      late.abort(new Error(`no answer within ${ASK_MS} ms`))
    )
    try {
      return await questions.add(() => go(signal), { signal })
    } catch (err) {
      log.warn({ err, ...what }, 'could not ask the API server, so the node is left alone')
      return undefined
    } finally {
      cancel()
    }
  }
  const once = <T>(name: string, go: () => Promise<T>): Promise<T> => {
    const now = clock.now()
    for (const [other, { at }] of asked) if (now - at >= FRESH_MS) asked.delete(other)
    const known = asked.get(name)
    if (known) return known.answer as Promise<T>
    const answer = go()
    asked.set(name, { at: now, answer })
    return answer
  }

  return {
    pod: ({ namespace, name }) =>
      once(`pod ${namespace}/${name}`, () =>
        ask({ pod: `${namespace}/${name}` }, async signal => ({
          pod: await cluster.fetchPod(namespace, name, signal)
        }))
      ),
    ownersOf: host => once(host, () => ask({ host }, signal => cluster.fetchPodsByIp(host, signal))),
    refresh: ({ namespace, name }) =>
      once(`service ${namespace}/${name}`, async () => {
        const service = { namespace, name }
        return (await ask({ service }, signal => cluster.fetchService(service, signal))) === true
      })
  }
}
