import type { KubeObject } from './objects.ts'
import type { ResourceName } from './resources.ts'

type Fields = Readonly<Record<string, unknown>>

const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}

let addresses = 0
/** A cluster IP without a listener: the sandbox has no kube-proxy. */
const clusterIP = () => {
  addresses += 1
  return `10.96.${(addresses >>> 8) & 255}.${addresses & 255}`
}

const podSpec = (spec: unknown): Fields => ({
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  serviceAccountName: 'default',
  ...fields(spec)
})

const template = (value: unknown): Fields => ({ ...fields(value), spec: podSpec(fields(value).spec) })

const workload = (given: Fields): Fields => ({ replicas: 1, ...given, template: template(given.template) })

const SPEC: Partial<Record<ResourceName, (given: Fields) => Fields>> = {
  pods: podSpec,
  services: given => ({
    type: 'ClusterIP',
    ipFamilies: ['IPv4'],
    ...given,
    clusterIP: given.clusterIP ?? clusterIP(),
    ports: (Array.isArray(given.ports) ? given.ports.map(fields) : []).map(port => ({
      protocol: 'TCP',
      targetPort: port.port,
      ...port
    }))
  }),
  deployments: given => {
    const strategy = fields(given.strategy)
    const rolling = (strategy.type ?? 'RollingUpdate') === 'RollingUpdate'
    const rollingUpdate = { maxSurge: '25%', maxUnavailable: '25%', ...fields(strategy.rollingUpdate) }
    return { ...workload(given), strategy: rolling ? { type: 'RollingUpdate', rollingUpdate } : strategy }
  },
  replicasets: workload,
  statefulsets: workload
}

const STATUS: Partial<Record<ResourceName, Fields>> = {
  pods: { phase: 'Pending' },
  services: { loadBalancer: {} },
  deployments: {},
  replicasets: { replicas: 0 },
  statefulsets: { replicas: 0 },
  namespaces: { phase: 'Active' }
}

/** Sets the defaults of a spec, as the API server does on create and update. Only defaults that clients read are set. */
export function withSpecDefaults<T extends KubeObject>(
  resource: ResourceName,
  object: T,
  current?: KubeObject
): T {
  const given = object as unknown as Fields
  // An update without a cluster IP keeps the stored one.
  const { clusterIP: kept } = fields((current as unknown as Fields | undefined)?.spec)
  const spec = { ...(kept === undefined ? {} : { clusterIP: kept }), ...fields(given.spec) }
  const filled = SPEC[resource]?.(spec)
  const slice =
    resource === 'endpointslices' ? { endpoints: given.endpoints ?? [], ports: given.ports ?? [] } : {}
  return { ...object, ...(filled ? { spec: filled } : {}), ...slice }
}

/** Sets the defaults of a new object, and its first status. */
export function withDefaults<T extends KubeObject>(resource: ResourceName, object: T): T {
  const status = STATUS[resource]
  const { status: given } = object as { status?: unknown }
  return {
    ...withSpecDefaults(resource, object),
    ...(status ? { status: { ...status, ...fields(given) } } : {})
  }
}
