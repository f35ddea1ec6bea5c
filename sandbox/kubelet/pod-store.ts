import type { Pod as StoredPod } from '../kubernetes/objects.ts'
import type { Store } from '../kubernetes/store.ts'
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

/** The part of the API server stand-in's store that the kubelet stand-in uses. */
export function podStore(store: Store): PodStore {
  /** The stored object, if it is still this pod and not a later pod of the same name. */
  const current = ({ metadata }: Pod): StoredPod | undefined => {
    const found = store.get('pods', metadata.namespace, metadata.name)
    return found?.metadata.uid === metadata.uid ? found : undefined
  }
  return {
    list: () => store.list('pods'),
    onChange: listener => store.onChange('pods', ({ type, object }) => listener(type, object)),
    patchStatus(pod, status) {
      if (current(pod)) store.patchStatus('pods', pod.metadata.namespace, pod.metadata.name, status)
    },
    remove(pod) {
      const { namespace, name, uid } = pod.metadata
      if (current(pod))
        store.delete('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } })
    },
    event(pod, type, reason, message) {
      const { namespace = 'default', name, uid } = pod.metadata
      const at = new Date(store.now()).toISOString()
      store.create('events', {
        metadata: { namespace, generateName: `${name}.` },
        type,
        reason,
        note: message,
        regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
        reportingController: 'kubelet',
        reportingInstance: pod.spec.nodeName,
        eventTime: at
      })
    }
  }
}
