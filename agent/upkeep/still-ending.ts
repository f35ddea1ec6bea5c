import { isOver } from '../rules/drain/eligible.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../rules/drain/facts.ts'
import { addressOf } from '../gateway/apisix/nodes.ts'
import type { CurrentDrains } from '../round/drain-store.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import type { Asking } from './asking.ts'

interface StillEndingOptions {
  readonly cluster: Pick<Cluster, 'verifyWatch' | 'podsAssuredAt'>
  readonly asking: Pick<Asking, 'pod' | 'ownersOf'>
  readonly drains: Pick<CurrentDrains, 'current' | 'isEnding'>
  /** When this process last came back from an absence; `-Infinity`: it was never away. */
  readonly resumedAt: () => Millis
}

/**
 * Asked right before every write: does the address still belong to a pod that ends? A change may have waited, and after a hook was
 * answered its pod goes and its address is reused. A silent watch does not show that, so the agent asks the API server. It need not
 * ask if a current watch has shown the pod's own deletion and its hook has no answer yet. It first asks for the pod itself (one
 * object); only if that is gone, it asks for the pods at the address. `undefined`: not known. The node then stays for now, because
 * a ghost is better than the removal of a pod that serves.
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
