import type { Holds } from './holds.ts'
import type { Cluster } from '../facts/cluster.ts'

/** Finds a pod by name: in the watch, or from the API server if the watch lacks it or has an earlier pod of that name. */
export function createFindPod(cluster: Pick<Cluster, 'pods' | 'isWatched' | 'fetchPod'>): Holds['find'] {
  return async (namespace, name, signal, uid) => {
    const known = cluster.pods.byName(namespace, name)
    if (known && (uid === undefined || known.uid === uid)) return known
    // The agent would never see the end of a pod that no watch covers, so its drain would never end.
    return cluster.isWatched(namespace) ? cluster.fetchPod(namespace, name, signal) : undefined
  }
}
