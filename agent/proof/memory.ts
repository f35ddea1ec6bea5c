import type { Drains } from '../drain/drain.ts'
import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { HiddenPlace } from '../plan/hidden.ts'
import type { Holder } from '../plan/holder.ts'
import type { ServiceName } from '../facts/slice-store.ts'

/** One place in APISIX that lists, or since the drain began listed, the pod. */
export interface Place {
  holder: Holder
  readonly node: NodeKey
  /** When it was seen to be gone from there, whichever writer removed it; `undefined` while it is listed. */
  removedAt: Millis | undefined
}

/** State of a drain that is kept from round to round, apart from the drain itself. Only rounds write it. */
export interface Memory {
  readonly places: Map<string, Place>
  /** By gateway: why its workers do not let the entry be sealed. */
  readonly unsealed: Map<string, string>
  /** See `Evidence.absentSince`. */
  absentSince: Millis | undefined
  /** Resolved target ports; kept because the slices go before the pod does. */
  ports: readonly number[]
  /** The Services that it is, or was, in: kept for the same reason. */
  services: readonly ServiceName[]
  /** By holder and reason, for as long as the drain lasts: a worker may still have what is gone from the inventory. */
  readonly hidden: Map<string, HiddenPlace>
  /** All gateways agreed once, so the first of them may be sealed by now: from here on each seals by its own words. */
  sealing: boolean
  /** It was sealed because the deadline was near. */
  sealForced: boolean
  /** When the first witness was heard, which is a little before the round that began the drain. */
  heardAt: Millis | undefined
  hookAt: Millis | undefined
  sliceAt: Millis | undefined
  ackAt: Millis | undefined
}

export interface Memories {
  of(uid: PodUid): Memory
  /** Drops what belongs to no drain and to no held hook any more. */
  keep(drains: Drains, held: ReadonlySet<PodUid>): void
}

export function createMemories(): Memories {
  const memories = new Map<PodUid, Memory>()
  return {
    of(uid) {
      const known = memories.get(uid)
      if (known) return known
      const fresh: Memory = {
        places: new Map(),
        unsealed: new Map(),
        absentSince: undefined,
        ports: [],
        services: [],
        hidden: new Map(),
        sealing: false,
        sealForced: false,
        heardAt: undefined,
        hookAt: undefined,
        sliceAt: undefined,
        ackAt: undefined
      }
      memories.set(uid, fresh)
      return fresh
    },
    keep(drains, held) {
      for (const uid of memories.keys()) if (!drains.has(uid) && !held.has(uid)) memories.delete(uid)
    }
  }
}
