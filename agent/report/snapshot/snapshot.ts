import type { ModeState } from '../../gateway/inventory/mode-watch.ts'
import type { Drain, Grade } from '../../rules/drain/drain.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { AckView, DrainLag, DrainMore, DrainView, Moments } from './drain-view.ts'
import type { HolderView } from './holder-view.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import type { LeadsTo } from '../../rules/plan/leads-to.ts'
import type { MissingPart } from './readiness.ts'
import type { Vouch } from '../../round/hold/holds.ts'

/** Raised if a field changes its meaning or is removed, so that an old page detects that it is old. */
export const SNAPSHOT_VERSION = 4

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
  /** Filled if the plugin reports it, as are `plugin` and `workers`. */
  readonly instance: string | null
  /** The version of the plugin. */
  readonly plugin: string | null
  /** Requests that the plugin has decided on since the gateway started; `null` without the plugin. */
  readonly counts: PluginCounts | null
  readonly workers: readonly {
    readonly id: number
    readonly revision: number
    readonly appliedAt: Millis | null
  }[]
  /** The revision that the gateway's slowest worker has applied, by kind of object. Empty without the plugin. */
  readonly applied: Readonly<Record<string, number>>
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
  /** Those with a container without the hook beside one with it: it ends at once, whatever the answer. */
  readonly early: readonly WorkloadView[]
  /** How many there are of each; the lists are cut. */
  readonly counts: { readonly without: number; readonly bare: number; readonly early: number }
}

export interface WorkloadView {
  /** `shop/Deployment/web`. */
  readonly name: string
  readonly pods: number
}

interface InventoryView extends Freshness {
  readonly holders: number
  readonly nodes: number
  readonly hooks: HooksView
}

export interface Totals {
  readonly drains: number
  readonly proven: number
  /** The proved drains by evidence. `observed` is a sample. */
  readonly graded: Readonly<Record<Grade, number>>
  readonly expired: number
  readonly undone: number
  readonly hooks: number
  readonly rounds: number
  /** The sleeps that answered hooks replaced, less the time that the hooks were held, in ms. Can be negative. */
  readonly savedMs: number
}

/** A pod that became Ready, on its way into the gateways. */
export interface ArrivalView {
  readonly uid: string
  readonly namespace: string
  readonly pod: string
  readonly owner: string | null
  /** When the agent learned that it is Ready. */
  readonly readyAt: Millis
  /** When every gateway routed to it in every holder; `null`: not yet, or the agent gave up first. */
  readonly routedAt: Millis | null
  /** The reason why it has not arrived yet; empty once it has. */
  readonly why: string
  readonly holders: readonly { readonly key: HolderKey; readonly at: Millis | null }[]
  readonly gateways: readonly {
    readonly name: string
    readonly at: Millis | null
    readonly evidence: 'barrier' | 'observed' | null
    readonly why: string
  }[]
}

/** The addresses at which the agent asks for evidence, so that an operator can send the same requests by hand. */
export interface Reach {
  readonly admin: string
  /** Of every gateway. `null` if it is not used. */
  readonly control: { readonly port: number } | null
  readonly barrier: { readonly scheme: string; readonly port: number } | null
}

interface LeaderView {
  readonly leads: boolean
  /** The holder of the Lease; `null` if none is known. */
  readonly holder: string | null
  /** `namespace/name`; `null` without an election. */
  readonly lease: string | null
  readonly why: string
}

/** The agent's whole state at the end of a round, frozen: `/api/state`, the dashboard's first message. Holds no secret. */
export interface Snapshot {
  readonly version: typeof SNAPSHOT_VERSION
  readonly at: Millis
  readonly agent: {
    /** Unique to this start of this agent. */
    readonly id: string
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
    readonly leader: LeaderView
    /** How APISIX is run; without `mode` until it is detected. */
    readonly apisix: ModeState
    readonly missingParts: readonly MissingPart[]
  }
  readonly watches: readonly WatchView[]
  readonly gateways: readonly GatewayView[]
  readonly inventory: InventoryView
  readonly holders: readonly HolderView[]
  /** Places in APISIX that lead to pods without listing them, or that no evidence covers. */
  readonly hidden: readonly LeadsTo[]
  readonly drains: readonly DrainView[]
  /** Finished drains, answers and lags, as far as they are kept (`history.ts`), newest first. */
  readonly past: readonly DrainView[]
  /** The finished drains that were not proved, kept for longer. */
  readonly unproved: readonly DrainView[]
  /** Also of other agents, as far as the entries in the gateways told them. The counts are those of this agent. */
  readonly acks: readonly AckView[]
  readonly lags: readonly DrainLag[]
  /** Pods on their way in, and those that have arrived (`arrivals.ts`), newest first. */
  readonly arrivals: readonly ArrivalView[]
  readonly totals: Totals
}

/** The data that a round passes on for display. */
export interface SnapshotSources {
  readonly now: Millis
  readonly agent: Snapshot['agent']
  readonly watches: readonly WatchView[]
  readonly gateways: readonly (Omit<GatewayView, keyof GatewayFact> & { readonly gateway: GatewayFact })[]
  readonly inventory: InventoryView
  readonly holders: readonly HolderView[]
  readonly hidden: readonly LeadsTo[]
  readonly drains: Iterable<Drain>
  /** A drain that is missing here has the moments of its witnesses. */
  readonly moments: ReadonlyMap<PodUid, Moments>
  readonly hooks: ReadonlyMap<PodUid, number>
  readonly more: (uid: PodUid) => DrainMore
  readonly history: Pick<Snapshot, 'past' | 'unproved' | 'acks' | 'lags'>
  readonly arrivals: readonly ArrivalView[]
  readonly totals: Totals
}
