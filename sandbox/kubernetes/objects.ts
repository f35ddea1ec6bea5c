import { randomBytes } from 'node:crypto'
/** The sandbox's Kubernetes objects, with the fields that the stand-ins read. Stored objects are frozen: replace, do not mutate them. */

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

export interface Meta {
  readonly name: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  /** RFC 3339, whole seconds, like every time in metadata. */
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  /** The last writer of each field; the sandbox does not read it. */
  readonly managedFields?: readonly unknown[]
}

export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: Meta
}

/** A new object from a caller, to which the store adds the rest of the metadata. */
export type Draft<T extends KubeObject> = Omit<T, 'metadata' | 'status'> & {
  readonly metadata: Partial<Meta>
  readonly status?: T extends { readonly status: infer S } ? S : unknown
}

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
}

interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: string
}

/** Exactly one of the three is set. */
export interface Hook {
  readonly exec?: { readonly command?: readonly string[] }
  readonly httpGet?: {
    readonly path?: string
    readonly port: number | string
    readonly host?: string
    readonly scheme?: string
  }
  readonly sleep?: { readonly seconds: number }
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly ports?: readonly ContainerPort[]
  readonly lifecycle?: { readonly preStop?: Hook; readonly postStart?: Hook }
  readonly restartPolicy?: string
}

export interface PodSpec {
  readonly nodeName?: string
  readonly hostNetwork?: boolean
  readonly serviceAccountName?: string
  readonly restartPolicy?: string
  readonly terminationGracePeriodSeconds?: number
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly [field: string]: unknown
}

interface ContainerStatus {
  readonly name: string
  readonly ready: boolean
  readonly restartCount: number
  readonly image?: string
  readonly started?: boolean
  readonly containerID?: string
  readonly state?: Readonly<Record<string, unknown>>
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly conditions?: readonly Condition[]
  readonly hostIP?: string
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly startTime?: string
  readonly reason?: string
  readonly message?: string
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
  readonly [field: string]: unknown
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status: PodStatus
}

interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly targetPort?: number | string
  readonly protocol?: string
  readonly appProtocol?: string
}

export interface Service extends KubeObject {
  readonly spec: {
    readonly selector?: Readonly<Record<string, string>>
    readonly ports?: readonly ServicePort[]
    readonly type?: string
    readonly clusterIP?: string
    readonly ipFamilies?: readonly ('IPv4' | 'IPv6')[]
    readonly publishNotReadyAddresses?: boolean
    readonly [field: string]: unknown
  }
  readonly status?: unknown
}

export interface SliceEndpoint {
  readonly addresses: readonly string[]
  readonly conditions: {
    readonly ready?: boolean
    readonly serving?: boolean
    readonly terminating?: boolean
  }
  readonly targetRef?: {
    readonly kind: string
    readonly namespace?: string
    readonly name: string
    readonly uid: string
  }
  readonly nodeName?: string
}

export interface SlicePort {
  readonly name?: string
  readonly port?: number
  readonly protocol?: string
  readonly appProtocol?: string
}

export interface EndpointSlice extends KubeObject {
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN'
  readonly endpoints: readonly SliceEndpoint[]
  readonly ports: readonly SlicePort[]
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
}

export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: PodSpec
}

export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: LabelSelector
    readonly template: PodTemplate
  }
  readonly status: {
    readonly replicas?: number
    readonly readyReplicas?: number
    readonly availableReplicas?: number
    readonly observedGeneration?: number
  }
}

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: LabelSelector
    readonly template: PodTemplate
    readonly strategy?: {
      readonly type?: 'RollingUpdate' | 'Recreate'
      readonly rollingUpdate?: {
        readonly maxSurge?: number | string
        readonly maxUnavailable?: number | string
      }
    }
  }
  readonly status: {
    readonly observedGeneration?: number
    readonly replicas?: number
    readonly updatedReplicas?: number
    readonly readyReplicas?: number
    readonly availableReplicas?: number
    readonly conditions?: readonly Condition[]
  }
}

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

/** Kinds whose content the sandbox does not read. */
export interface OpaqueObject extends KubeObject {
  readonly [field: string]: unknown
}

/** The key of an object in the store: namespace/name. */
export const keyOf = ({ metadata }: { metadata: Partial<Meta> }): string =>
  metadata.namespace === undefined ? `${metadata.name}` : `${metadata.namespace}/${metadata.name}`

/** Freezes the value at every depth. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(Object.freeze(value))) freeze(inner)
  return value
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
/** The random end of a generated name (`generateName`). */
export const nameSuffix = (): string =>
  Array.from(randomBytes(5), byte => ALPHABET[byte % ALPHABET.length]).join('')

/** Restores the fields that a client cannot change by writing the object. */
export function keepSystemFields(given: Partial<Meta>, current: Meta): Meta {
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, generateName: ___, ...rest } = given
  const { generateName, generation, deletionTimestamp, deletionGracePeriodSeconds } = current
  return {
    ...rest,
    name: current.name,
    ...(current.namespace === undefined ? {} : { namespace: current.namespace }),
    ...(generateName === undefined ? {} : { generateName }),
    uid: current.uid,
    resourceVersion: current.resourceVersion,
    creationTimestamp: current.creationTimestamp,
    ...(generation === undefined ? {} : { generation }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds })
  }
}
