import type { Pod } from './pod.ts'
import type { PodStatus } from './status.ts'

/** The calls of the API server that the kubelet stand-in makes. A write to a pod that is gone does nothing, and does not throw. */
export interface PodStore {
  list(): readonly Pod[]
  /** Calls `listener` for every later change. Returns the function that removes the listener. */
  onChange(listener: (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod) => void): () => void
  /** Finds the pod by uid: a later pod of the same name stays unchanged. */
  patchStatus(pod: Pod, status: PodStatus): void
  /** Deletes the pod's object with grace 0, as the last call of a kubelet about a pod. */
  remove(pod: Pod): void
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void
}
