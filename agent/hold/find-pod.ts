import type { Holds } from './holds.ts'
import type { Cluster } from '../facts/cluster.ts'

/** A pod by its name: as the watch knows it, or as the API server says where the watch does not, or knows one before it. */
export function createFindPod(cluster: Pick<Cluster, 'pods' | 'isWatched' | 'fetchPod'>): Holds['find'] {
  return async (namespace, name, signal, uid) => {
    const known = cluster.pods.byName(namespace, name)
    if (known && (uid === undefined || known.uid === uid)) return known
    // A pod that no watch covers would never be seen to go, so its drain would never end.
    return cluster.isWatched(namespace) ? cluster.fetchPod(namespace, name, signal) : undefined
  }
}
