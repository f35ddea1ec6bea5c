import type { NodeKey } from '../drain/facts.ts'

/** The Admin API collections that can list nodes (apisix/admin/upstreams.lua checks the same set for traffic-split). */
export type Resource =
  | 'upstreams'
  | 'services'
  | 'routes'
  | 'stream_routes'
  | 'plugin_configs'
  | 'consumers'
  | 'consumer_groups'
  | 'global_rules'

/** `upstreams/web`, `routes/r1/upstream`, `routes/r2/plugins/traffic-split/0/1` (rule 0, weighted upstream 1). */
export type HolderKey = string

/** The other writer of a holder, known by labels and names. */
export type Owner = 'ingress-controller-1' | 'ingress-controller-2' | 'unknown'

export interface HolderNode {
  /** Canonical, see `nodeKey`. */
  readonly key: NodeKey
  /** Without brackets. May be a domain name. */
  readonly host: string
  readonly port: number | undefined
  readonly weight: number
  /** Exactly as APISIX gave it: the map key, or the array element with all its fields. */
  readonly raw: string | Readonly<Record<string, unknown>>
}

/** An APISIX object that lists nodes. */
export interface Holder {
  readonly key: HolderKey
  readonly resource: Resource
  readonly id: string
  /** From the object to the upstream that lists the nodes: `[]`, `['upstream']`, `['plugins', 'traffic-split', …]`. */
  readonly path: readonly (string | number)[]
  /** How the nodes are written. Removal differs: `null` merge for a map, a whole new array for an array. */
  readonly form: 'map' | 'array'
  readonly nodes: readonly HolderNode[]
  /** Set if APISIX finds the nodes itself (`discovery_type`): nothing to edit here. */
  readonly discovery: { readonly type: string; readonly service: string } | undefined
  /** Proxied as L4: a stream route's own, or of scheme tcp, tls or udp. The inventory knows which upstreams stream routes refer to. */
  readonly l4?: boolean
  readonly owner: Owner
  readonly labels: Readonly<Record<string, string>>
  readonly name: string | undefined
  /** etcd's mod_revision of the object when it was read; 0 if the answer did not have it (answers to writes do not). */
  readonly revision: number
}
