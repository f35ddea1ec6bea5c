import { wholeSeconds } from '../deletion.ts'
import type { Pod } from '../objects.ts'
import type { Store } from '../store.ts'
import { createQueue } from './queue.ts'
import { keyOf, splitKey } from './owned.ts'

/** Puts every pod on one of the hosts, in turn. Returns the function that stops it. */
export function startScheduler(store: Store, hosts: readonly string[] = ['host-1']): () => void {
  let turn = 0
  for (const name of hosts)
    if (!store.get('nodes', undefined, name))
      store.create('nodes', {
        metadata: { name, labels: { 'kubernetes.io/hostname': name } },
        status: { conditions: [{ type: 'Ready', status: 'True' }] }
      })
  const queue = createQueue(key => {
    const [namespace, name] = splitKey(key)
    const pod = store.get('pods', namespace, name)
    if (!pod || pod.spec.nodeName || pod.metadata.deletionTimestamp) return
    const nodeName = hosts[turn % hosts.length] ?? 'host-1'
    turn += 1
    store.modify('pods', namespace, name, now => ({ ...now, spec: { ...now.spec, nodeName } }))
    store.patchStatus('pods', namespace, name, {
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: wholeSeconds(store.now()) }]
    })
  })
  const consider = (pod: Pod) => {
    if (!pod.spec.nodeName) queue.add(keyOf(pod))
  }
  const stop = store.onChange('pods', ({ type, object }) => {
    if (type === 'ADDED') consider(object)
  })
  for (const pod of store.list('pods')) consider(pod)
  return () => {
    stop()
    queue.stop()
  }
}
