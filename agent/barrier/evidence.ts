import type { GatewayFact, Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { Grade, HolderReport } from '../drain/drain.ts'
import type { HiddenPlace } from '../plan/hidden.ts'
import type { HolderKey } from '../plan/holder.ts'
import type { Standbys } from '../plan/standby.ts'
import type { Word } from './word.ts'

/** What fresh-connection reads of one gateway's Control API have shown of one drain, since its removal was accepted. */
export interface Observation {
  /**
   * Reads in a row, each on its own connection and begun after the removal was accepted, in which no holder listed the
   * node. Back to 0 when one shows it. The Control API does not say which worker answers, and a
   * frozen one answers none (apisix-measured b): a sample, never a proof.
   */
  readonly cleanReads: number
  readonly firstCleanAt: Millis | undefined
  readonly lastReadAt: Millis | undefined
  /** The last read that succeeded still showed the node: the contrary of a proof, so no weaker grade may stand in. */
  readonly stillListed: boolean
  /** Why the last read failed, or where it still saw the node; empty when it was clean. */
  readonly problem: string
}

/** What one gateway's barrier (our plugin) last said of one drain. */
export interface BarrierReading {
  readonly at: Millis
  /** When the gateway counted what it says now for the first time: it may have been read many times since. */
  readonly unchangedSince: Millis
  /** Changes when the gateway restarts in full and forgets its entries. */
  readonly instance: string
  /** The plugin found APISIX's internals as it expects them, in every live worker. Unfit never proves anything. */
  readonly fit: boolean
  readonly entry: 'absent' | 'draining' | 'sealed'
  readonly inflight: { readonly requests: number; readonly long: number }
  /** What its workers say of the pod's addresses; `undefined`: they were not asked, or its plugin is older than the agent. */
  readonly word: Word | undefined
  /** Requests that were sent to the node although it was sealed: a failure inside the gateway. */
  readonly late: number
  /** The `inflight` above was read after the entry was sealed: the fourth step of the guarantee. */
  readonly readAfterSeal: boolean
  /**
   * It has answered for this drain fit, or with requests in flight. From then on only its own fit 0 after the seal releases this
   * gateway: a reload that makes it unfit, a call that fails or a restart says nothing of the requests that it has told of.
   */
  readonly binding: boolean
  readonly problem: string
}

/** Everything known about one drain, gathered by the loop from the parts that do I/O. */
export interface Evidence {
  /** The pod's node addresses: hosts with ports where the pod shares its host's address, else bare hosts. */
  readonly nodes: readonly NodeKey[]
  /** When the inventory that `holders` rests on was read; `undefined` before the first complete one. */
  readonly inventoryAt: Millis | undefined
  /**
   * Where `holders` is empty: when the first inventory that began after the drain was read and did not list the pod.
   * The settle time of a pod that another writer took out runs from here (`inventoryAt` moves with every listing).
   */
  readonly absentSince: Millis | undefined
  /** Why there is no fresh inventory, or empty. */
  readonly inventoryProblem: string
  /** Every holder that lists, or since the drain began listed, the pod. `acceptedAt`: removal accepted and read back. */
  readonly holders: readonly (HolderReport & {
    readonly acceptedAt: Millis | undefined
    readonly observable: boolean
  })[]
  readonly gateways: readonly {
    readonly gateway: GatewayFact
    readonly observation: Observation | undefined
    readonly barrier: BarrierReading | undefined
    /** Why nothing that answers for it counts: it is not one gateway (`BarrierKeeper.doubt`). Empty where it is. */
    readonly doubt: string
    /** Why its workers do not let the entry be sealed, when that was last asked. */
    readonly unsealed: string
  }[]
  /** The gateway watch is synced, so the list above is complete. */
  readonly gatewaysKnown: boolean
  /** The entry was sealed because the deadline was near, not because every gateway knew another node. */
  readonly sealForced: boolean
  /** Who takes over where the pod was the last node with a weight, by the last listing. */
  readonly standbys: readonly Standbys[]
  /** Where requests may reach the pod from that the rest of this does not cover. */
  readonly hiddenBy: readonly HiddenPlace[]
}

/** The evidence a drain needs, and how long each weaker grade must have held before it counts. All times in ms. */
export interface ProofSettings {
  /** A better grade is always waited for as long as it can still come; a worse one never counts. */
  readonly minimumGrade: Grade
  /** Clean reads in a row that each gateway must have given. */
  readonly reads: number
  /** After the removal was accepted and the first of the clean reads: requests that had already been given the node. */
  readonly observedSettleMs: number
  /** After the removal was accepted, where gateways could not be observed. */
  readonly acceptedSettleMs: number
  /** After the drain began, where nothing at all could be proved: the sleep this tool replaces. */
  readonly floorMs: number
}

/** Which drains want evidence from which addresses: the probe's work list. */
export interface Wanted {
  readonly uid: PodUid
  readonly nodes: readonly NodeKey[]
  /** Reads begun before this do not count. */
  readonly since: Millis
  /** Holders that are not ours to write, so that a gateway must be seen to have let go of the nodes itself. */
  readonly through?: readonly HolderKey[]
}
