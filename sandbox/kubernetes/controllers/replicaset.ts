import type { Draft, Pod, ReplicaSet } from '../objects.ts'
import type { Store } from '../store.ts'
import { controllerOf, isActive, isReady, keyOf, ownedBy, referenceTo, splitKey } from './owned.ts'
import { createQueue } from './queue.ts'

const COST = 'controller.kubernetes.io/pod-deletion-cost'

/** The pod with the smallest rank is deleted first, in the order of Kubernetes. */
const rank = (pod: Pod): readonly number[] => [
  pod.spec.nodeName ? 1 : 0,
  pod.status.phase === 'Running' ? 1 : 0,
  isReady(pod) ? 1 : 0,
  Number(pod.metadata.annotations?.[COST] ?? 0),
  // Of two pods that serve, the younger one is deleted.
  -Date.parse(pod.metadata.creationTimestamp)
]

const byRank = (a: Pod, b: Pod): number => {
  const other = rank(b)
  return (
    rank(a)
      .map((value, index) => value - other[index]!)
      .find(difference => difference !== 0) ?? 0
  )
}

/** The creations and deletions that lead to the wanted number of pods. */
export function planReplicas(
  replicaSet: ReplicaSet,
  pods: readonly Pod[]
): { readonly create: number; readonly remove: readonly Pod[] } {
  const active = pods.filter(isActive)
  const wanted = replicaSet.metadata.deletionTimestamp ? active.length : (replicaSet.spec.replicas ?? 1)
  return {
    create: Math.max(wanted - active.length, 0),
    remove: active.toSorted(byRank).slice(0, Math.max(active.length - wanted, 0))
  }
}

function replicaSetStatus(replicaSet: ReplicaSet, pods: readonly Pod[]): ReplicaSet['status'] {
  const active = pods.filter(isActive)
  const ready = active.filter(isReady).length
  return {
    replicas: active.length,
    readyReplicas: ready,
    availableReplicas: ready,
    observedGeneration: replicaSet.metadata.generation ?? 0
  }
}

const podOf = (replicaSet: ReplicaSet): Draft<Pod> => {
  const { metadata, spec } = replicaSet.spec.template
  return {
    metadata: {
      generateName: `${replicaSet.metadata.name}-`,
      namespace: replicaSet.metadata.namespace ?? 'default',
      ...(metadata?.labels ? { labels: metadata.labels } : {}),
      ...(metadata?.annotations ? { annotations: metadata.annotations } : {}),
      ownerReferences: [referenceTo(replicaSet)]
    },
    spec
  }
}

/** Keeps each ReplicaSet at its number of pods. Returns the function that stops it. */
export function startReplicaSets(store: Store): () => void {
  const queue = createQueue(key => {
    const [namespace, name] = splitKey(key)
    const replicaSet = store.get('replicasets', namespace, name)
    if (!replicaSet) return
    const owned = () => store.list('pods', { namespace }).filter(ownedBy(replicaSet))
    const { create, remove } = planReplicas(replicaSet, owned())
    for (let i = 0; i < create; i += 1) store.create('pods', podOf(replicaSet))
    for (const { metadata } of remove)
      store.delete('pods', namespace, metadata.name, { preconditions: { uid: metadata.uid } })
    const pods = owned()
    // A listener may have deleted the set meanwhile.
    if (store.get('replicasets', namespace, name)?.metadata.uid !== replicaSet.metadata.uid) return
    store.patchStatus('replicasets', namespace, name, { ...replicaSetStatus(replicaSet, pods) })
  })
  const stopSets = store.onChange('replicasets', ({ type, object }) => {
    if (type !== 'DELETED') queue.add(keyOf(object))
  })
  const stopPods = store.onChange('pods', ({ object }) => {
    const owner = controllerOf(object)
    if (owner?.kind === 'ReplicaSet') queue.add(`${object.metadata.namespace ?? ''}/${owner.name}`)
  })
  for (const replicaSet of store.list('replicasets')) queue.add(keyOf(replicaSet))
  return () => {
    stopSets()
    stopPods()
    queue.stop()
  }
}
