import type { GatewayFact, Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { Grade, HolderReport } from '../drain/drain.ts'
import type { LongLived } from '../drain/long-lived.ts'
import type { HiddenPlace } from '../plan/hidden.ts'
import type { HolderKey } from '../plan/holder.ts'
import type { Word } from './word.ts'

/** The reads of one gateway's Control API for one drain, each on a new connection, since its removal was accepted. */
export interface Observation {
  /**
   * Consecutive reads in which no holder listed the node, each on its own connection and begun after the removal was accepted.
   * 0 again after a read that shows the node. The Control API does not report which worker answers, and a frozen worker never
   * answers (measured on APISIX 3.18). So this is a sample, never a proof.
   */
  readonly cleanReads: number
  readonly firstCleanAt: Millis | undefined
  /** The last successful read still showed the node. This disproves the drain, so no weaker grade may replace `observed`. */
  readonly stillListed: boolean
  /** Why the last read failed, or where it still found the node; empty if it was clean. */
  readonly problem: string
}

/** The last report of one gateway's barrier (the plugin) on one drain. */
export interface BarrierReading {
  readonly at: Millis
  /** When the gateway counted its requests, on the agent's clock: at most `at`. */
  readonly countedAt: Millis
  /** When the gateway first counted the same as in its current report. The agent may have read the same report many times since. */
  readonly unchangedSince: Millis
  /** Changes when the gateway restarts in full and forgets its entries. */
  readonly instance: string
  /** The plugin found APISIX's internals as it expects them, in every live worker. An unfit report proves nothing. */
  readonly fit: boolean
  readonly entry: 'absent' | 'draining' | 'sealed'
  /** When the gateway sealed the entry, on the agent's clock. */
  readonly sealedAt: Millis | undefined
  /** When, after the seal, the last ordinary request had finished. */
  readonly idleAt: Millis | undefined
  readonly inflight: {
    /** Requests that end by themselves. The pod must not stop before they have ended. */
    readonly requests: number
    readonly long: LongLived
  }
  /**
   * The words of the gateway's workers about the pod's addresses; `undefined`: the workers were not asked, or the plugin is older than the
   * agent.
   */
  readonly word: Word | undefined
  /** Requests that were sent to the node although it was sealed: a failure inside the gateway. */
  readonly late: number
  /** The `inflight` above was read after the entry was sealed: the fourth step of the guarantee. */
  readonly readAfterSeal: boolean
  /**
   * The gateway has answered for this drain while fit, or with requests in flight. From then on, only its own fit report of 0 in flight
   * after the seal releases this gateway. A reload that makes it unfit, a failed call or a restart does not show that the reported requests
   * have ended.
   */
  readonly binding: boolean
  readonly problem: string
}

/** Everything known about one drain, gathered by the loop from the parts that do I/O. */
export interface Evidence {
  /** The pod's node keys: IPs with ports if the pod shares its host's address, otherwise bare IPs. */
  readonly nodes: readonly NodeKey[]
  /** When the inventory behind `holders` was read; `undefined` before the first complete one; `-Infinity` if it covers one gateway only. */
  readonly inventoryAt: Millis | undefined
  /**
   * If `holders` is empty: when the agent first read an inventory that is newer than the drain and does not list the pod. The settle time
   * of a pod that another writer removed begins here, because `inventoryAt` moves with every listing.
   */
  readonly absentSince: Millis | undefined
  /** Why there is no fresh inventory, or empty. */
  readonly inventoryProblem: string
  /** Every holder that lists the pod, or has listed it since the drain began. `acceptedAt`: removal accepted and read back. */
  readonly holders: readonly (HolderReport & {
    readonly acceptedAt: Millis | undefined
    readonly observable: boolean
    /** The holder is of another namespace and lists no other node, and the seal did not wait for such a node. */
    readonly letGo?: true
    /** Nobody removes the node, for its next pod has the same address. */
    readonly stays?: true
  })[]
  readonly gateways: readonly {
    readonly gateway: GatewayFact
    readonly observation: Observation | undefined
    readonly barrier: BarrierReading | undefined
    /**
     * Why no answer of this gateway counts: its address may not lead to one gateway (`BarrierKeeper.doubt`). Empty without such a doubt.
     */
    readonly doubt: string
    /** Why the gateway's workers did not allow the seal when last asked. */
    readonly unsealed: string
  }[]
  /** The gateway watch is synced, so the list above is complete. */
  readonly gatewaysKnown: boolean
  /** The entry was sealed because the deadline was near, although some gateway may know no other node. */
  readonly sealForced: boolean
  /** Places in which only successors of the pod are left, by the words that allowed the seal. */
  readonly succeeded: readonly string[]
  /** Places from which requests may reach the pod, and which the other fields do not cover. */
  readonly hiddenBy: readonly HiddenPlace[]
}

/** The evidence that a drain needs, and how long each weaker grade must have held before it counts. All times in ms. */
export interface ProofSettings {
  /** The weakest grade that proves a drain. A weaker grade never counts. */
  readonly minimumGrade: Grade
  /** How many consecutive clean reads each gateway must give. */
  readonly reads: number
  /** Counted from the accepted removal and the first clean read, for requests whose node was chosen before. */
  readonly observedSettleMs: number
  /** Counted from the accepted removal, if gateways could not be observed. */
  readonly acceptedSettleMs: number
  /** Counted from the start of the drain, if nothing at all could be proved: the sleep that the agent replaces. */
  readonly floorMs: number
  /** The longest wait for websockets and streams, counted from the start of the drain. */
  readonly longLivedMs: number
}

/** One item of the probe's work list: a drain that wants evidence, and the nodes that the reads look for. */
export interface Wanted {
  readonly uid: PodUid
  readonly nodes: readonly NodeKey[]
  /** Reads that began before this time do not count. */
  readonly since: Millis
  /** Holders that the agent may not write. Reads of the gateway must show that their nodes are gone. */
  readonly through?: readonly HolderKey[]
}
