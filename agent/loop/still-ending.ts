import type { Clock } from '../clock.ts'
import type { NodeKey, PodUid } from '../drain/facts.ts'
import { addressOf } from '../gateway/nodes.ts'
import type { Log } from '../log.ts'
import type { Loop } from '../loop.ts'
import type { Cluster } from '../watch/cluster.ts'
import { hasEnded } from '../watch/pod-fact.ts'

/** How long the API server may take to say who has an address, in ms. */
const ASK_MS = 1000

export interface StillEndingOptions {
  readonly cluster: () => Pick<Cluster, 'fetchPod' | 'fetchPodsByIp' | 'doubt'>
  readonly loop: () => Pick<Loop, 'isEnding' | 'drains'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Asked right before every write: is the address still that of a pod that ends? A change may have waited, and once a hook has
 * been answered the pod goes and its address is given out again. A watch that is silent does not show that, so a write
 * for a pod whose hook has been answered asks the API server: for the pod itself, one object, and only where that is gone for
 * whoever has the address, which costs the server a look at every pod. Where it cannot be asked the node is left alone: better a
 * ghost than a pod that serves.
 */
export function createStillEnding({ cluster, loop, clock, log }: StillEndingOptions) {
  return async (uid: PodUid, node: NodeKey): Promise<boolean> => {
    if (!loop().isEnding(uid, node)) return false
    const drain = loop().drains().get(uid)
    if (!drain || drain.phase === 'draining' || drain.pod.hostNetwork) return drain !== undefined
    const { namespace, name } = drain.pod
    const late = new AbortController()
    const cancel = clock.alarm(clock.now() + ASK_MS, () =>
      late.abort(new Error(`no answer within ${ASK_MS} ms`))
    )
    try {
      const itself = await cluster().fetchPod(namespace, name, late.signal)
      if (itself?.uid === uid && !hasEnded(itself)) return true
      const owners = await cluster().fetchPodsByIp(addressOf(node).host, late.signal)
      const next = owners.find(pod => pod.uid !== uid && pod.deletionAt === undefined)
      if (next) cluster().doubt('pods')
      return next === undefined
    } catch (err) {
      log.warn({ err, node }, 'could not ask the API server whose address this is, so the node is left alone')
      return false
    } finally {
      cancel()
    }
  }
}
