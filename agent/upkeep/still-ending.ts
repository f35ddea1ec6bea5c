import { isOver, saysThatItEnds } from '../drain/eligible.ts'
import type { Millis, NodeKey, PodFact, PodUid } from '../drain/facts.ts'
import { addressOf } from '../apisix/nodes.ts'
import type { Loop } from '../round/loop.ts'
import type { Cluster } from '../facts/cluster.ts'
import type { Asking } from './asking.ts'

interface StillEndingOptions {
  readonly cluster: () => Pick<Cluster, 'verifyWatch' | 'podsAssuredAt'>
  readonly asking: Pick<Asking, 'pod' | 'ownersOf'>
  readonly loop: () => Pick<Loop, 'isEnding' | 'drains'>
  /** When this process was last back from not running; `-Infinity`: never. */
  readonly resumedAt: () => Millis
}

/**
 * Asked right before every write: is the address still that of a pod that ends? A change may have waited, and once a hook has
 * been answered the pod goes and its address is given out again. A watch that is silent does not show that, so the API
 * server is asked, but for a pod whose own deletion has been seen and whose hook has not been answered, by a watch that is not behind: for the pod
 * itself, one object, and only where that is gone for whoever has the address. `undefined`: that cannot be told. Then the node is
 * left alone for now: better a ghost than a pod that serves.
 */
export function createStillEnding({ cluster, asking, loop, resumedAt }: StillEndingOptions) {
  return async (uid: PodUid, node: NodeKey): Promise<boolean | undefined> => {
    if (!loop().isEnding(uid, node)) return false
    const drain = loop().drains().get(uid)
    if (!drain) return false
    const isCurrent = cluster().podsAssuredAt() >= resumedAt()
    if (isCurrent && drain.phase === 'draining' && drain.pod.deletionAt !== undefined) return true
    const itself = await asking.pod(drain.pod)
    if (!itself) return undefined
    // A slice or a condition said that it ends, and may have been taken back: then the drain is undone in a moment.
    if (itself.pod?.uid === uid && !isOver(itself.pod)) return saysThatItEnds(itself.pod) || undefined
    const { host, port } = addressOf(node)
    const owners = await asking.ownersOf(host)
    if (owners === undefined) return undefined
    const stays = (pod: PodFact) =>
      pod.deletionAt === undefined &&
      !isOver(pod) &&
      (!pod.hostNetwork || port === undefined || pod.containerPorts.includes(port))
    if (owners.some(pod => pod.uid !== uid && stays(pod))) {
      cluster().verifyWatch('pods')
      return false
    }
    return loop().isEnding(uid, node)
  }
}
