import type { Addresses } from '../../sandbox/kubelet/addresses.ts'
import type { Pod } from '../../sandbox/kubernetes/objects.ts'
import type { Store } from '../../sandbox/kubernetes/store.ts'
import { runningStatus } from '../../sandbox/manifests.ts'

/** A pod in Kubernetes. No kubelet runs it: the test makes its changes. */
export interface TestPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly ip: string
  /** The one port of its container. */
  readonly port: number
  /** `ip:port`, as a holder lists it. */
  readonly node: string
}

export interface PodOptions {
  readonly namespace?: string
  readonly ip?: string
  /** A second address, of the other family. */
  readonly ipv6?: string
  readonly ready?: boolean
  /** When its container started (RFC 3339); default: now. */
  readonly startedAt?: string
  /** Default 300: longer than any test, even on a busy machine. A test that needs the deadline sets it. */
  readonly graceSeconds?: number
  readonly annotations?: Readonly<Record<string, string>>
  readonly port?: number
  readonly hostNetwork?: boolean
  /** The `hostPort` of its container. */
  readonly hostPort?: number
  /** The address of its host. */
  readonly hostIp?: string
  /** Its container does not declare the port. */
  readonly declaresNone?: boolean
  /** A second container, `proxy`, which declares no port. */
  readonly proxy?: true
  /** Its controller; the group is `apps` unless `apiVersion` names another. A ReplicaSet's name ends with the hash of its template. */
  readonly owner?: { readonly kind: string; readonly name: string; readonly apiVersion?: string }
  readonly labels?: Readonly<Record<string, string>>
  /** The Kubernetes host that it runs on; default: `host-1`. */
  readonly host?: string
}

export interface Pods {
  /** Running and Ready, with a loopback address of its own. */
  pod(name: string, options?: PodOptions): TestPod
  /** Deletes it: from now on it is Terminating. */
  end(pod: TestPod, graceSeconds?: number): void
  /** Removes its object, as after the end of its last container, or by `--force`. */
  gone(pod: TestPod): void
  isReady(pod: TestPod, ready: boolean): void
  /** One of its containers restarts after a failed liveness probe. */
  restarted(pod: TestPod, restarts: number, container?: string): void
  condition(pod: TestPod, type: string, status: 'True' | 'False'): void
  object(pod: TestPod): Pod | undefined
  /** All pods that this object made and that still exist. */
  pods(): readonly TestPod[]
  /** Makes a Service and the slice that lists these pods; a second call replaces the slice. */
  service(name: string, pods: readonly TestPod[], namespace?: string): void
}

const NAMESPACE = 'shop'
const PORT = 28080

/** A ReplicaSet that wants one more pod; no controller makes it. */
const NOT_RUN = {
  replicas: 1,
  selector: { matchLabels: {} },
  template: { metadata: {}, spec: { containers: [] } }
}

/** The label that a Deployment gives the pods of its ReplicaSets. */
const hashLabel = ({ kind, name }: PodOptions['owner'] & {} = { kind: '', name: '' }) =>
  kind === 'ReplicaSet' ? { 'pod-template-hash': name.replace(/^.*-/, '') } : {}

export function createPods(store: Store, addresses: Addresses): Pods {
  const patch = ({ namespace, name }: TestPod, status: Readonly<Record<string, unknown>>) =>
    void store.patchStatus('pods', namespace, name, status)
  const condition: Pods['condition'] = (pod, type, status) => patch(pod, { conditions: [{ type, status }] })
  const object: Pods['object'] = ({ namespace, name, uid }) => {
    const found = store.get('pods', namespace, name)
    return found?.metadata.uid === uid ? found : undefined
  }
  const made: TestPod[] = []
  return {
    pods: () => made.filter(pod => object(pod) !== undefined),
    pod(name, options = {}) {
      const { namespace = NAMESPACE, ip = addresses.allocate(), port = PORT } = options
      const hostPort = options.hostPort === undefined ? {} : { hostPort: options.hostPort }
      const hostIp = options.hostIp === undefined ? {} : { hostIP: options.hostIp }
      const set = options.owner?.kind === 'ReplicaSet' ? options.owner.name : undefined
      if (set !== undefined && !store.get('replicasets', namespace, set))
        store.create('replicasets', { metadata: { namespace, name: set }, spec: NOT_RUN })
      const { metadata } = store.create('pods', {
        metadata: {
          namespace,
          name,
          labels: { ...hashLabel(options.owner), ...options.labels },
          ...(options.annotations && { annotations: options.annotations }),
          ...(options.owner && {
            ownerReferences: [{ apiVersion: 'apps/v1', uid: 'owner', controller: true, ...options.owner }]
          })
        },
        spec: {
          nodeName: options.host ?? 'host-1',
          terminationGracePeriodSeconds: options.graceSeconds ?? 300,
          ...(options.hostNetwork && { hostNetwork: true }),
          containers: [
            {
              name: 'app',
              ports: options.declaresNone ? [] : [{ containerPort: port, ...hostPort }]
            },
            ...(options.proxy ? [{ name: 'proxy' }] : [])
          ]
        }
      })
      const pod = { namespace, name, uid: metadata.uid, ip, port, node: `${ip}:${port}` }
      const status = runningStatus(ip, options.startedAt ?? new Date().toISOString())
      const podIPs = options.ipv6 === undefined ? status.podIPs : [{ ip }, { ip: options.ipv6 }]
      patch(pod, { ...status, ...hostIp, podIPs })
      if (options.ready === false) condition(pod, 'Ready', 'False')
      made.push(pod)
      return pod
    },
    end: ({ namespace, name, uid }, graceSeconds) =>
      void store.delete('pods', namespace, name, {
        preconditions: { uid },
        ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds })
      }),
    gone: ({ namespace, name, uid }) =>
      void store.delete('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } }),
    isReady: (pod, ready) => condition(pod, 'Ready', ready ? 'True' : 'False'),
    restarted: (pod, restartCount, name = 'app') =>
      patch(pod, {
        containerStatuses: [
          ...(object(pod)?.status.containerStatuses ?? []).filter(one => one.name !== name),
          {
            name,
            containerID: `containerd://${name}-${restartCount}`,
            ready: true,
            restartCount,
            // The first run began long ago.
            state: { running: { startedAt: new Date(restartCount && Date.now()).toISOString() } }
          }
        ]
      }),
    condition,
    object,
    service(name, pods, namespace = NAMESPACE) {
      const ports = [{ name: 'http', port: PORT }]
      const slice = {
        metadata: { namespace, name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4' as const,
        ports,
        endpoints: pods.map(pod => {
          const found = object(pod)
          const terminating = found?.metadata.deletionTimestamp !== undefined
          const ready =
            found?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ??
            false
          return {
            addresses: [pod.ip],
            conditions: { ready: ready && !terminating, serving: ready, terminating },
            targetRef: { kind: 'Pod', namespace, name: pod.name, uid: pod.uid }
          }
        })
      }
      if (store.get('endpointslices', namespace, slice.metadata.name)) {
        store.update('endpointslices', slice)
        return
      }
      store.create('services', {
        metadata: { namespace, name },
        spec: { ports: [{ name: 'http', port: 80 }] }
      })
      store.create('endpointslices', slice)
    }
  }
}
