import type { Pod } from './pod.ts'
import type { PodStatus } from './status.ts'

/** What the kubelet stand-in needs of the API server. A pod that is gone is no error: writes to it do nothing. */
export interface PodStore {
  list(): readonly Pod[]
  /** Calls back for every change after now; returns what ends that. */
  onChange(listener: (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod) => void): () => void
  /** `pod` is meant by uid: a successor of the same name stays as it is. */
  patchStatus(pod: Pod, status: PodStatus): void
  /** Deletes with grace 0: the kubelet's last word on a pod. */
  remove(pod: Pod): void
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void
}
