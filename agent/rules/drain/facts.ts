/** The agent's form of Kubernetes objects: small copies, made in `facts/`. Besides `facts/`, only `doctor` sees a V1Pod. */

declare const brand: unique symbol

/** The identity of a pod. Neither its name (StatefulSets reuse it) nor its IP (the next pod may get it) identifies a pod. */
export type PodUid = string & { readonly [brand]: 'PodUid' }

/** Milliseconds since the epoch, on the agent's own clock (`clock.ts`). */
export type Millis = number

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

/** The fields of a pod that a drain can depend on. */
export interface PodFact {
  readonly uid: PodUid
  readonly namespace: string
  readonly name: string
  readonly phase: PodPhase
  /** The condition Ready. It stays true while preStop runs in a liveness restart. */
  readonly ready: boolean
  /** `status.podIPs`, both families, without brackets. */
  readonly ips: readonly string[]
  /** The pod shares its host's address, so an IP alone does not name it. */
  readonly hostNetwork: boolean
  /** Every `containerPort` of the spec, including those of init containers (sidecars). */
  readonly containerPorts: readonly number[]
  /** The containers of the spec, without those that only initialise, each with its ports. */
  readonly containers?: readonly { readonly name: string; readonly ports: readonly number[] }[]
  /** Which run of each container the status shows, by the end of its containerID: "web=3f2a91c0d1e2 proxy=…". */
  readonly runs?: string
  /** Ports of the pod's host that lead to the pod (`hostPort`), and the host's address. */
  readonly hostPorts?: readonly number[]
  readonly hostIp?: string | undefined
  /** `metadata.deletionTimestamp`: when the grace ends, by the API server's clock (whole seconds). */
  readonly deletionAt: Millis | undefined
  /** `metadata.deletionGracePeriodSeconds`, in ms. */
  readonly deletionGraceMs: number | undefined
  /** `spec.terminationGracePeriodSeconds`, in ms; 30 s if absent. */
  readonly graceMs: number
  /** The longest of it and the graces of the probes, in ms. */
  readonly longestGraceMs?: number
  /** The youngest `startedAt` of the containers. */
  readonly startedAt: Millis | undefined
  /** The controller that owns the pod ("ReplicaSet/web-5d7f"); for a mirror pod, its host ("Node/…"). */
  readonly owner: string | undefined
  /** The controller with its API group, the same for all generations: "ReplicaSet.apps/web-<pod-template-hash>", "StatefulSet.apps/db". */
  readonly workload?: string | undefined
  /** The Kubernetes host (node) that it runs on. */
  readonly host?: string | undefined
  /** Whether a preStop hook of the pod asks the agent, and has a fallback (not `bare`). `part`: not in every container. For display only. */
  readonly hook?: 'bare' | 'part' | 'safe' | undefined
  /** Only annotations whose key begins with `apisix-drain.io/`. */
  readonly annotations: Readonly<Record<string, string>>
  /** The labels that distinguish pods of one workload, as one string, without those that controllers generate. */
  readonly labelKey?: string | undefined
  /** That string before a change of labels, until the change counts as settled (`withLabels`). */
  readonly before?: { readonly labelKey: string | undefined; readonly until: Millis }
}

/** The part of a Service that names the upstream for its endpoints, and the addresses that lead to its pods. */
export interface ServiceFact {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  /** On the clock of the API server. */
  readonly createdAt: Millis
  readonly ports: readonly {
    readonly name: string
    readonly port: number
    /** Absent: TCP. */
    readonly protocol?: string
  }[]
  /** Empty if it is headless. */
  readonly clusterIps: readonly string[]
  /** `externalIPs`, and the addresses and host names of its load balancer. */
  readonly external: readonly string[]
  readonly nodePorts: readonly number[]
  /** The DNS name that this Service is an alias of. */
  readonly externalName: string | undefined
  /** Only annotations whose key begins with `apisix-drain.io/`. */
  readonly annotations: Readonly<Record<string, string>>
}

/** One address of an EndpointSlice. Absent `ready` means true, absent `serving` means `ready`, absent `terminating` means false. */
export interface Endpoint {
  readonly address: string
  readonly podUid: PodUid | undefined
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
}

/** One EndpointSlice: the map from a Service to pod addresses, and a second witness of an end. */
export interface EndpointFact {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly service: string
  readonly family: 'IPv4' | 'IPv6' | 'FQDN'
  /** `port: undefined` means all ports. */
  readonly ports: readonly { readonly name: string; readonly port: number | undefined }[]
  readonly endpoints: readonly Endpoint[]
}

/** One running APISIX. Every gateway that may still serve is included, even if it is Terminating or unready. */
export interface GatewayFact {
  /** The pod's uid, and `name` is its `namespace/name`; both are the configured name if gateways are listed by hand. */
  readonly id: string
  readonly name: string
  readonly ip: string
  readonly ready: boolean
  readonly terminating: boolean
  /** The Kubernetes host (node) that the gateway runs on, for display. */
  readonly host: string | undefined
  /** An operator listed it: the list may be incomplete, and several gateways may answer at the address. */
  readonly byHand?: true
  /** When the gateway's object was gone, if the agent did not see the gateway end. It may still serve (deleted by force, relabelled). */
  readonly vanishedAt?: Millis
  /** When the agent first saw it not Ready, or Terminating. Absent: it is Ready. */
  readonly unreadyAt?: Millis
  /** None of its containers runs, by its status. */
  readonly stopped?: true
}

/** `10.0.0.7:8080`, `[fd00::7]:8080`, or the bare host if there is no port. */
export type NodeKey = string

/** The only form of a node's address inside the agent, whatever form APISIX uses. */
export function nodeKey(host: string, port: number | undefined): NodeKey {
  const bare = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  return port === undefined ? bare : `${bare}:${port}`
}

/** Exponential back-off, without jitter: the wait in ms after this many doublings, at most `longest`. */
export const doubled = (
  { first, longest }: { readonly first: Millis; readonly longest: Millis },
  times: number
): Millis => Math.min(longest, first * 2 ** times)

/** The latest of all; `undefined` if one is missing, or if the list is empty. */
export function latest(all: readonly (Millis | undefined)[]): Millis | undefined {
  const known = all.filter(at => at !== undefined)
  return known.length > 0 && known.length === all.length ? known.reduce((a, b) => Math.max(a, b)) : undefined
}

/** The earliest defined time. */
export function earliest(some: readonly (Millis | undefined)[]): Millis | undefined {
  const known = some.filter(at => at !== undefined)
  return known.length > 0 ? known.reduce((a, b) => Math.min(a, b)) : undefined
}
