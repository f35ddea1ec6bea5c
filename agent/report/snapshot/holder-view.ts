import type { Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { GatewayLag } from '../../rules/members/behind.ts'
import type { HolderKey, Owner } from '../../rules/plan/holder.ts'

/** One holder in three views: EndpointSlices, the Admin API, and each gateway. */
export interface HolderView {
  readonly key: HolderKey
  readonly name: string | null
  readonly owner: Owner
  /** `namespace/name` of the one Service that it is known to follow. */
  readonly service: string | null
  readonly form: 'map' | 'array' | 'discovery'
  readonly nodes: readonly NodeKey[]
  /** Nodes whose pod does not exist any more. */
  readonly ghosts: readonly { readonly node: NodeKey; readonly since: Millis }[]
  /** Ready endpoints that the holder does not list. */
  readonly missing: readonly { readonly node: NodeKey; readonly since: Millis }[]
  /** Nodes that it lists although their endpoint is not Ready any more, and the pod stays. Only if an ingress controller owns it. */
  readonly notReady: readonly { readonly node: NodeKey; readonly since: Millis }[]
  /** etcd's revision of the object; counted by the agent in standalone mode. */
  readonly revision: number
  /** Set while a change of the ready endpoints, or of the object, has not arrived everywhere: see `BehindView`. */
  readonly behind: BehindView | null
  /** How long the gateways took to route by the last change, from Kubernetes on. Empty until one was seen from its beginning. */
  readonly lags: readonly GatewayLag[]
  /** Set if no listed node serves, with the successors that do; never for discovery. `since`: when the last of its pods began to end. */
  readonly onSuccessors: { readonly since: Millis; readonly nodes: readonly NodeKey[] } | null
}

/** How far a holder is behind Kubernetes. */
export interface BehindView {
  /** The oldest change that has not arrived. */
  readonly since: Millis
  /** The oldest change that its owner has not written, whatever came later; `null`: none is known. */
  readonly owner: Millis | null
  /** The cause: its owner, or the agent's own sync, has not written it; or gateways have not applied it. */
  readonly cause: 'owner' | 'sync' | 'gateways'
  /** The gateways that are known to lack a revision of the Admin API, or that have not sealed a pod. `observed`: one worker showed it. */
  readonly gateways: readonly {
    readonly gateway: string
    readonly since: Millis
    readonly why: string
    readonly evidence: GatewayLag['evidence']
  }[]
}
