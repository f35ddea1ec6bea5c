import type { Deployment, Draft, Hook, Pod, Service } from './kubernetes/objects.ts'

// The objects that a user would otherwise `kubectl apply`.

export const NAMESPACE = 'shop'
export const APP = 'web'
export const SERVICE_PORT = 80
export const PORT_NAME = 'http'
export const HOST = 'host-1'
export const IMAGE = 'sandbox/app'
export const GATEWAY_NAMESPACE = 'apisix'
/** Not 8080: a server of the user that listens on all addresses would conflict. */
const APP_PORT = 28_081
const GRACE_SECONDS = 30

const labels = { 'app.kubernetes.io/name': APP }

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })

/** The Deployment whose rolling update is measured, with the defaults of Kubernetes: 25 % surge, 25 % unavailable. */
export const deployment = (replicas: number, preStop: Hook | undefined): Draft<Deployment> => ({
  metadata: { namespace: NAMESPACE, name: APP, labels },
  spec: {
    replicas,
    selector: { matchLabels: labels },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
    template: {
      metadata: { labels },
      spec: {
        terminationGracePeriodSeconds: GRACE_SECONDS,
        containers: [
          {
            name: 'app',
            image: IMAGE,
            ports: [{ name: 'http', containerPort: APP_PORT }],
            env: [
              { name: 'PORT', value: String(APP_PORT) },
              { name: 'VERSION', value: '1' },
              field('POD_NAME', 'metadata.name'),
              field('POD_NAMESPACE', 'metadata.namespace'),
              field('POD_UID', 'metadata.uid'),
              field('POD_IP', 'status.podIP')
            ],
            ...(preStop && { lifecycle: { preStop } })
          }
        ]
      }
    }
  }
})

/** The same Deployment with another version of its app: this starts a rolling update. */
export function withVersion(current: Deployment, version: string): Deployment {
  const { template } = current.spec
  const containers = template.spec.containers.map(container => ({
    ...container,
    env: container.env?.map(entry => (entry.name === 'VERSION' ? { ...entry, value: version } : entry)) ?? []
  }))
  return {
    ...current,
    spec: { ...current.spec, template: { ...template, spec: { ...template.spec, containers } } }
  }
}

export const service = (annotations: Readonly<Record<string, string>> = {}): Draft<Service> => ({
  metadata: { namespace: NAMESPACE, name: APP, labels, annotations },
  spec: { selector: labels, ports: [{ name: PORT_NAME, port: SERVICE_PORT, targetPort: 'http' }] }
})

/** The pod of a gateway. No kubelet runs it: the gateway is a process already. @param hostNetwork several pods may call from its address */
export const gatewayPod = (name: string, hostNetwork = false): Draft<Pod> => ({
  metadata: {
    namespace: GATEWAY_NAMESPACE,
    name,
    labels: { 'app.kubernetes.io/name': 'apisix', 'app.kubernetes.io/instance': 'sandbox' }
  },
  spec: {
    nodeName: 'host-of-gateways',
    hostNetwork,
    containers: [{ name: 'apisix', image: 'apache/apisix' }]
  }
})

export const runningStatus = (ip: string, now: string) => ({
  phase: 'Running' as const,
  podIP: ip,
  podIPs: [{ ip }],
  startTime: now,
  conditions: [
    { type: 'ContainersReady', status: 'True' as const, lastTransitionTime: now },
    { type: 'Ready', status: 'True' as const, lastTransitionTime: now }
  ],
  containerStatuses: [
    {
      name: 'apisix',
      image: 'apache/apisix',
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: now } }
    }
  ]
})
