import type { Deployment, EndpointSlice, Lease, OpaqueObject, Pod, ReplicaSet, Service } from './objects.ts'

export interface ResourceInfo {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly namespaced: boolean
  /** Has a `status` subresource: writes to the object keep its status, and writes to the status keep the rest. */
  readonly status: boolean
  /** Has a `scale` subresource. */
  readonly scale: boolean
  /** Whether a PUT without resourceVersion is accepted (not for a Lease, whose lock would then be worthless). */
  readonly unconditionalUpdate: boolean
}

export const resource = (
  group: string,
  version: string,
  kind: string,
  shortNames: readonly string[] = [],
  differs: Partial<ResourceInfo> = {}
): ResourceInfo => ({
  group,
  version,
  kind,
  singular: kind.toLowerCase(),
  shortNames,
  namespaced: true,
  status: false,
  scale: false,
  unconditionalUpdate: true,
  ...differs
})

/** Every stored resource, by its plural name. */
export const RESOURCES = {
  pods: resource('', 'v1', 'Pod', ['po'], { status: true }),
  services: resource('', 'v1', 'Service', ['svc'], { status: true }),
  events: resource('events.k8s.io', 'v1', 'Event', ['ev']),
  nodes: resource('', 'v1', 'Node', ['no'], { namespaced: false, status: true }),
  namespaces: resource('', 'v1', 'Namespace', ['ns'], { namespaced: false, status: true }),
  configmaps: resource('', 'v1', 'ConfigMap', ['cm']),
  secrets: resource('', 'v1', 'Secret'),
  serviceaccounts: resource('', 'v1', 'ServiceAccount', ['sa']),
  endpointslices: resource('discovery.k8s.io', 'v1', 'EndpointSlice'),
  leases: resource('coordination.k8s.io', 'v1', 'Lease', [], { unconditionalUpdate: false }),
  deployments: resource('apps', 'v1', 'Deployment', ['deploy'], { status: true, scale: true }),
  replicasets: resource('apps', 'v1', 'ReplicaSet', ['rs'], { status: true, scale: true }),
  statefulsets: resource('apps', 'v1', 'StatefulSet', ['sts'], { status: true, scale: true })
} as const satisfies Record<string, ResourceInfo>

export type ResourceName = keyof typeof RESOURCES

/** The object type behind each resource name. */
export interface ResourceTypes {
  pods: Pod
  services: Service
  events: OpaqueObject
  nodes: OpaqueObject
  namespaces: OpaqueObject
  configmaps: OpaqueObject
  secrets: OpaqueObject
  serviceaccounts: OpaqueObject
  endpointslices: EndpointSlice
  leases: Lease
  deployments: Deployment
  replicasets: ReplicaSet
  statefulsets: OpaqueObject
}

export const isResource = (name: string): name is ResourceName => Object.hasOwn(RESOURCES, name)

export const infoOf = (name: ResourceName): ResourceInfo => RESOURCES[name]

export const apiVersionOf = (info: ResourceInfo): string =>
  info.group === '' ? info.version : `${info.group}/${info.version}`

/** A resource's name in messages: "pods", "deployments.apps". */
export const qualified = (name: ResourceName): string => {
  const { group } = infoOf(name)
  return group === '' ? name : `${name}.${group}`
}
