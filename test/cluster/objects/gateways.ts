import { ADMIN_PORT, BARRIER_PORT, CONTROL_PORT, FOLLOW_PORT, PROXY_PORT } from '../gateway/ports.ts'
import { GATEWAY } from '../images/names.ts'
import { field, namespace, secret, service } from './fields.ts'

/** The namespace of the official chart. The names, labels and ports below are those of its release `apisix`. */
export const GATEWAY_NAMESPACE = 'apisix'
const LABELS = { 'app.kubernetes.io/name': 'apisix', 'app.kubernetes.io/instance': 'apisix' }
/** The labels of the stand-in that is etcd and Admin API for every gateway. The chart has no such pod. */
const STORE_LABELS = { app: 'apisix-store' }

export interface Keys {
  readonly adminKey: string
  readonly barrierToken: string
}

/** Returns the objects of the gateways and their Admin API, and the Secrets that the agent's chart expects. */
export const gatewayObjects = (replicas: number, keys: Keys): readonly object[] => [
  namespace(GATEWAY_NAMESPACE),
  secret(GATEWAY_NAMESPACE, 'apisix-drain', { 'admin-key': keys.adminKey }),
  secret(GATEWAY_NAMESPACE, 'apisix-drain-token', { token: keys.barrierToken }),
  service(GATEWAY_NAMESPACE, 'apisix-gateway', LABELS, [{ port: 80, targetPort: PROXY_PORT }]),
  service(GATEWAY_NAMESPACE, 'apisix-admin', STORE_LABELS, [{ port: ADMIN_PORT, name: 'apisix-admin' }]),
  service(GATEWAY_NAMESPACE, 'apisix-etcd', STORE_LABELS, [{ port: FOLLOW_PORT }]),
  deployment('apisix-store', 1, STORE_LABELS, {
    args: ['test/cluster/gateway/store.ts'],
    env: [{ name: 'ADMIN_KEY', value: keys.adminKey }],
    readinessProbe: { tcpSocket: { port: FOLLOW_PORT }, periodSeconds: 1 }
  }),
  deployment(
    'apisix',
    replicas,
    LABELS,
    {
      args: ['test/cluster/gateway/main.ts'],
      env: [
        { name: 'STORE', value: `http://apisix-etcd.${GATEWAY_NAMESPACE}:${FOLLOW_PORT}` },
        { name: 'TOKEN_FILE', value: '/run/token/token' },
        field('POD_NAME', 'metadata.name')
      ],
      ports: [
        { name: 'http', containerPort: PROXY_PORT },
        { name: 'control', containerPort: CONTROL_PORT },
        { name: 'barrier', containerPort: BARRIER_PORT }
      ],
      readinessProbe: { tcpSocket: { port: PROXY_PORT }, periodSeconds: 1 },
      volumeMounts: [{ name: 'token', mountPath: '/run/token' }]
    },
    [{ name: 'token', secret: { secretName: 'apisix-drain-token' } }]
  )
]

const deployment = (
  name: string,
  replicas: number,
  labels: Readonly<Record<string, string>>,
  container: object,
  volumes: readonly object[] = []
): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: GATEWAY_NAMESPACE, name, labels },
  spec: {
    replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        volumes,
        terminationGracePeriodSeconds: 5,
        containers: [
          {
            name,
            image: GATEWAY,
            imagePullPolicy: 'Never',
            resources: { requests: { cpu: '200m' } },
            ...container
          }
        ]
      }
    }
  }
})
