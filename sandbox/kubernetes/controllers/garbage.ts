import type { ResourceName } from '../resources.ts'
import type { Store } from '../store.ts'
import { createQueue } from './queue.ts'

const OWNED: readonly ResourceName[] = ['replicasets', 'pods', 'endpointslices']

/** Deletes the dependents of a deleted object (background propagation), and a deleted namespace's objects. Returns a stop function. */
export function startGarbageCollector(store: Store): () => void {
  const each = (
    resource: ResourceName,
    isGarbage: (object: ReturnType<Store['list']>[number]) => boolean
  ) => {
    for (const object of store.list(resource)) {
      const { namespace, name, deletionTimestamp } = object.metadata
      if (deletionTimestamp === undefined && isGarbage(object) && store.get(resource, namespace, name))
        store.delete(resource, namespace, name)
    }
  }
  const owners = createQueue(uid => {
    for (const resource of OWNED)
      each(resource, ({ metadata }) => metadata.ownerReferences?.some(owner => owner.uid === uid) ?? false)
  })
  const namespaces = createQueue(gone => {
    const contents: readonly ResourceName[] = [
      'deployments',
      'statefulsets',
      'services',
      'configmaps',
      'secrets',
      'leases'
    ]
    for (const resource of [...contents, ...OWNED])
      each(resource, ({ metadata }) => metadata.namespace === gone)
  })
  const stop = store.onAnyChange(({ type, resource, object }) => {
    if (type !== 'DELETED') return
    if (resource === 'namespaces') namespaces.add(object.metadata.name)
    else if (['deployments', 'replicasets', 'statefulsets', 'services'].includes(resource))
      owners.add(object.metadata.uid)
  })
  return () => {
    stop()
    owners.stop()
    namespaces.stop()
  }
}
