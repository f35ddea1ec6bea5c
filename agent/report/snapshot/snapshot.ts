import type { Leadership } from '../../kubernetes/lead/elector.ts'
import type { ModeState } from '../../gateway/inventory/lists.ts'
import type { Grade } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { AckView, DrainLag, DrainView } from './drain-view.ts'
import type { HolderKey, Owner } from '../../rules/plan/holder.ts'
import type { MissingPart, Vouch } from '../../round/hold/hooks.ts'

/** Raised if a field changes its meaning or is removed, so that an old page detects that it is old. */
export const SNAPSHOT_VERSION = 9

export interface GatewayView {
  readonly id: string
  readonly name: string
  readonly ip: string
  readonly host: string | null
  readonly ready: boolean
  readonly terminating: boolean
  /** The evidence this gateway can give now. */
  readonly available: Grade | null
  readonly why: string
  /** When each of its two interfaces last answered, and the problem of the last try (empty = none). */
  readonly control: Freshness | null
  readonly barrier: Freshness | null
  /** The version of the plugin; filled if it reports it, as are `workers`. */
  readonly plugin: string | null
  /** Requests that the plugin has decided on since the gateway started; `null` without the plugin. */
  readonly counts: PluginCounts | null
  readonly workers: readonly {
    readonly id: number
    readonly revision: number
    readonly appliedAt: Millis | null
  }[]
}

export interface PluginCounts {
  /** Sent to another node, because the one that APISIX had picked is ending. */
  readonly moved: number
  /** Sent to a successor, because no listed node served. */
  readonly succeeded: number
  /** Answered with 503, because only sealed nodes were left. */
  readonly refused: number
  /** Sent to a pod that is ending, because no other node could be picked. */
  readonly bypasses: number
}

export interface Freshness {
  readonly lastSuccessAt: Millis | null
  readonly lastAttemptAt: Millis | null
  readonly problem: string
}

export interface WatchView {
  readonly kind: string
  readonly state: 'connecting' | 'live' | 'stale'
  readonly lastEventAt: Millis | null
  readonly objects: number
  readonly problem: string
}

/** The workloads to whose pods holders lead, and how their pods ask the agent before they end. */
export interface HooksView {
  readonly routed: number
  /** Those with pods that have no hook of the agent: such a pod gets its SIGTERM at once. */
  readonly without: readonly WorkloadView[]
  /** Those whose hook has nothing to fall back to if the agent does not answer. */
  readonly bare: readonly WorkloadView[]
  /** Those with the hook in some containers only: the others end at once, whatever the answer. */
  readonly early: readonly WorkloadView[]
  /** How many there are of each; the lists are cut. */
  readonly counts: { readonly without: number; readonly bare: number; readonly early: number }
}

export interface WorkloadView {
  /** `shop/Deployment/web`. */
  readonly name: string
  readonly pods: number
}

interface InventoryView extends Omit<Freshness, 'lastAttemptAt'> {
  readonly hooks: HooksView
}

export interface Totals {
  /** The proved drains by evidence. `observed` is a sample. */
  readonly graded: Readonly<Record<Grade, number>>
  readonly expired: number
  readonly hooks: number
  /** The sleeps that answered hooks replaced, less the time that the hooks were held, in ms. Can be negative. */
  readonly savedMs: number
}

/** A pod that became Ready, on its way into the gateways. */
export interface ArrivalView {
  readonly uid: string
  readonly namespace: string
  readonly pod: string
  /** When the agent learned that it is Ready. */
  readonly readyAt: Millis
  /** When every gateway routed to it in every holder; `null`: not yet, or the agent gave up first. */
  readonly routedAt: Millis | null
  /** The holders that list it. */
  readonly holders: readonly HolderKey[]
  /** The reason why it has not arrived yet; empty once it has. */
  readonly why: string
  /** When each gateway routed to it in every holder; `null`: not yet. */
  readonly gateways: readonly { readonly name: string; readonly at: Millis | null }[]
}

/** The addresses at which the agent asks for evidence, so that an operator can send the same requests by hand. */
export interface Reach {
  /** Empty without an Admin API. */
  readonly admin: string
  /** Of every gateway. `null` if it is not used. */
  readonly control: { readonly port: number } | null
  readonly barrier: { readonly scheme: string; readonly port: number } | null
}

/** The agent's whole state at the end of a round, frozen: `/api/state`, the dashboard's first message. Holds no secret. */
export interface Snapshot {
  readonly version: typeof SNAPSHOT_VERSION
  readonly at: Millis
  readonly agent: {
    /** The name of its pod. */
    readonly name: string
    readonly version: string
    readonly startedAt: Millis
    readonly dryRun: boolean
    /** The sleep that a hook of this agent replaces (`REPLACED_SLEEP_MS`). */
    readonly sleepMs: number
    readonly reach: Reach
    readonly vouch: Vouch
    /** The agent that leads, if there are several. */
    readonly leader: Leadership
    /** How APISIX is run; without `mode` until it is detected. */
    readonly apisix: ModeState
    readonly missingParts: readonly MissingPart[]
  }
  readonly watches: readonly WatchView[]
  readonly gateways: readonly GatewayView[]
  readonly inventory: InventoryView
  readonly holders: readonly HolderView[]
  readonly drains: readonly DrainView[]
  /** Finished drains, answers and lags, as far as they are kept (`record.ts`), newest first. Drains that were not proved are kept for longer. */
  readonly past: readonly DrainView[]
  /** Also those of other agents that entries in the gateways have reported. The counts are this agent's. */
  readonly acks: readonly AckView[]
  readonly lags: readonly DrainLag[]
  /** Pods on their way in, and those that have arrived (`arrivals-view.ts`), newest first. */
  readonly arrivals: readonly ArrivalView[]
  readonly totals: Totals
}

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
  /** Set if no listed node serves; never for discovery. `nodes`: the successors. `since`: when the last listed pod began to end. */
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
  /** The gateways that are known to lack a revision of the Admin API, or that have not sealed a pod. */
  readonly gateways: readonly {
    readonly gateway: string
    readonly since: Millis
    readonly why: string
  }[]
}
