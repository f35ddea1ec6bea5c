import type { Pod } from './pod.ts'
import type { PodStatus } from './status.ts'

/** What the kubelet stand-in needs of the API server. Writes to a pod that is gone do nothing; they are not an error. */
export interface PodStore {
  list(): readonly Pod[]
  /** Calls back for every change after now; returns what ends that. */
  onChange(listener: (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod) => void): () => void
  /** Finds the pod by uid: a successor of the same name stays unchanged. */
  patchStatus(pod: Pod, status: PodStatus): void
  /** Deletes with grace 0: the kubelet's last word on a pod. */
  remove(pod: Pod): void
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void
}
