import type { Deployment, Draft, Pod } from '../../../../../sandbox/kubernetes/objects.ts'
import {
  startControllers,
  type ControllerOptions
} from '../../../../../sandbox/kubernetes/controllers/start.ts'
import { createStore, type Store } from '../../../../../sandbox/kubernetes/store.ts'

/** Lets the controllers take `n` turns of the event loop. */
export async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i += 1) await new Promise(resolve => setImmediate(resolve))
}

export const deployment = (
  name: string,
  spec: Partial<Deployment['spec']> = {},
  version = 1
): Draft<Deployment> => ({
  metadata: { name, namespace: 'default' },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: [{ name: 'app', image: `app:${version}`, ports: [{ name: 'http', containerPort: 8080 }] }]
      }
    },
    ...spec
  }
})

/** Makes a store with controllers. Its kubelet makes pods ready at once, and removes them at once. */
export function cluster(options: ControllerOptions = {}): { store: Store; stop(): void } {
  const store = createStore()
  const controllers = startControllers(store, options)
  let last = 0
  const kubelet = ({ metadata, spec, status }: Pod) => {
    if (metadata.deletionTimestamp)
      store.delete('pods', metadata.namespace, metadata.name, { gracePeriodSeconds: 0 })
    else if (spec.nodeName && status.phase === 'Pending') {
      last += 1
      const ip = `10.0.${last >> 8}.${last & 255}`
      store.patchStatus('pods', metadata.namespace, metadata.name, {
        phase: 'Running',
        podIP: ip,
        podIPs: [{ ip }, { ip: `fd00::${last.toString(16)}` }],
        conditions: [{ type: 'Ready', status: 'True' }]
      })
    }
  }
  store.onChange('pods', ({ type, object }) => {
    if (type !== 'DELETED' && object.metadata.deletionGracePeriodSeconds !== 0)
      setImmediate(() => {
        const now = store.get('pods', object.metadata.namespace, object.metadata.name)
        if (now) kubelet(now)
      })
  })
  return { store, stop: () => controllers.stop() }
}
