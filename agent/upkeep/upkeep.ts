import type { Millis, PodFact, NodeKey, PodUid } from '../rules/drain/facts.ts'
import type { Writer } from '../gateway/write/writer.ts'
import type { Observer } from '../round/gather/drain-status.ts'
import type { Sync } from './sync.ts'
import { addressOf } from '../gateway/apisix/holders.ts'
import type { Log } from '../base/log.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import PQueue from 'p-queue'
import type { Clock } from '../base/clock.ts'
import type { ServiceName } from '../kubernetes/facts/slice-store.ts'
import { isOver } from '../rules/drain/eligible.ts'
import { inTime } from '../kubernetes/transport/connection.ts'
import type { DrainStore } from '../round/gather/sources.ts'

/** After each round, makes the writer check every claimed object that differs from its members. */
export const syncObserver = (
  sync: Sync | undefined,
  writer: Pick<Writer, 'tend'>,
  now: () => Millis
): Observer => ({
  round() {
    for (const target of sync?.targets(now()) ?? []) writer.tend(target)
  }
})

/** Concurrent requests. To find an address, the API server scans all pods. */
const AT_ONCE = 16
/** Equal requests within this time, in ms, share one answer: a pod can be in dozens of holders. */
const FRESH_MS = 100

interface AskingOptions {
  readonly cluster: Pick<Cluster, 'fetchPod' | 'fetchPodsByIp' | 'fetchService'>
  readonly clock: Clock
  readonly log: Log
}

export type Asking = ReturnType<typeof createAsking>

/**
 * Asks the API server, not the watches, about nodes that a write is about to remove. A silent or late watch shows neither that an
 * address has a new pod nor that a pod is ready again. `undefined` and `false`: no answer.
 */
export function createAsking({ cluster, clock, log }: AskingOptions) {
  const questions = new PQueue({ concurrency: AT_ONCE })
  const asked = new Map<string, { readonly at: Millis; readonly answer: Promise<unknown> }>()

  const ask = async <T>(what: object, go: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> => {
    try {
      return await inTime({ clock }, signal => questions.add(() => go(signal), { signal }))
    } catch (err) {
      log.warn({ err, ...what }, 'could not ask the API server, so the node is left alone')
      return undefined
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
    /** The pod of this name, if it exists: one object, at little cost. */
    pod: ({ namespace, name }: ServiceName): Promise<{ readonly pod: PodFact | undefined } | undefined> =>
      once(`pod ${namespace}/${name}`, () =>
        ask({ pod: `${namespace}/${name}` }, async signal => ({
          pod: await cluster.fetchPod(namespace, name, signal)
        }))
      ),
    /** The pods that have this address. The API server scans all pods, by first address only (dual stack). */
    ownersOf: (host: string): Promise<readonly PodFact[] | undefined> =>
      once(host, () => ask({ host }, signal => cluster.fetchPodsByIp(host, signal))),
    /** Updates the stores with a Service and its EndpointSlices. `false` also if the Service does not exist any more. */
    refresh: ({ namespace, name }: ServiceName): Promise<boolean> =>
      once(`service ${namespace}/${name}`, async () => {
        const service = { namespace, name }
        return (await ask({ service }, signal => cluster.fetchService(service, signal))) === true
      })
  }
}

interface StillEndingOptions {
  readonly cluster: Pick<Cluster, 'verifyWatch' | 'podsAssuredAt'>
  readonly asking: Pick<Asking, 'pod' | 'ownersOf'>
  readonly drains: Pick<DrainStore, 'current' | 'isEnding'>
  /** When this process last came back from an absence; `-Infinity`: it was never away. */
  readonly resumedAt: () => Millis
}

/**
 * Checks right before every write that the address still belongs to a pod that ends: a change may have waited while another pod got the
 * address. A silent watch does not show that, so the agent asks the API server, unless a current watch has shown the pod's own deletion
 * and its hook has no answer yet. It asks for the pod, and only if that is gone for the pods at the address. `undefined`: not known; the
 * node stays, because a ghost is better than the removal of a pod that serves.
 */
export function createStillEnding({ cluster, asking, drains, resumedAt }: StillEndingOptions) {
  return async (uid: PodUid, node: NodeKey): Promise<boolean | undefined> => {
    if (!drains.isEnding(uid, node)) return false
    const drain = drains.current().get(uid)
    if (!drain) return false
    const isCurrent = cluster.podsAssuredAt() >= resumedAt()
    if (isCurrent && drain.phase === 'draining' && drain.pod.deletionAt !== undefined) return true
    const itself = await asking.pod(drain.pod)
    if (!itself) return undefined
    // Only a deletion is never taken back, and nobody adds a node again that was removed for a pod that stays.
    if (itself.pod?.uid === uid && !isOver(itself.pod))
      return itself.pod.deletionAt !== undefined || undefined
    const { host, port } = addressOf(node)
    const owners = await asking.ownersOf(host)
    if (owners === undefined) return undefined
    const stays = (pod: PodFact) =>
      pod.deletionAt === undefined &&
      !isOver(pod) &&
      (!pod.hostNetwork || port === undefined || pod.containerPorts.includes(port))
    if (owners.some(pod => pod.uid !== uid && stays(pod))) {
      cluster.verifyWatch('pods')
      return false
    }
    return drains.isEnding(uid, node)
  }
}
