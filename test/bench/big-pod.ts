import type { Pod } from '../../sandbox/kubernetes/objects.ts'
import type { Store } from '../../sandbox/kubernetes/store.ts'
import { runningStatus } from '../../sandbox/manifests.ts'

/** A pod of a real cluster weighs 10.9 kB as JSON, about half of it managedFields. */
const SPEC_BYTES = 4200
const MANAGED_BYTES = 5200

const annotations = Object.fromEntries(
  Array.from({ length: Math.ceil(SPEC_BYTES / 60) }, (_, i) => [`example.com/field-${i}`, 'x'.repeat(36)])
)
const fields = Object.fromEntries(
  Array.from({ length: Math.ceil(MANAGED_BYTES / 80) }, (_, i) => [
    `f:field-of-the-pod-${i}`,
    { 'f:inner': {} }
  ])
)

/** Creates the `i`th running pod. Nothing listens at its address. */
export function bigPod(store: Store, name: string, i: number): Pod {
  const { metadata } = store.create('pods', {
    metadata: {
      namespace: 'shop',
      name,
      labels: { app: name.split('-')[0] ?? name },
      annotations,
      managedFields: [
        { manager: 'kube-controller-manager', operation: 'Update', fieldsV1: fields },
        { manager: 'kubelet', operation: 'Update', fieldsV1: fields }
      ]
    },
    spec: {
      nodeName: 'host-1',
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'app', ports: [{ containerPort: 8080 }] }]
    }
  })
  const ip = `10.${1 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`
  return store.patchStatus('pods', 'shop', metadata.name, runningStatus(ip, new Date().toISOString()))
}
