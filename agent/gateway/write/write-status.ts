import type { NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'

/** The state of one removal. The names are those of `HolderReport`. */
export interface WriteStatus {
  readonly state: 'writing' | 'removed' | 'kept-last' | 'failed'
  /** A message for an operator; empty if there is nothing to report. */
  readonly why: string
}

/** The state of every removal, until its drain is over: one for each node of a holder. The next pod at the node replaces this state. */
interface WriteStatuses {
  get(holder: HolderKey, node: NodeKey, uid: PodUid): WriteStatus | undefined
  set(holder: HolderKey, node: NodeKey, uid: PodUid, status: WriteStatus): void
  forget(uid: PodUid): void
}

export function createWriteStatuses(): WriteStatuses {
  const all = new Map<string, { uid: PodUid; status: WriteStatus }>()
  const ofPod = new Map<PodUid, Set<string>>()
  const name = (holder: HolderKey, node: NodeKey) => `${holder} ${node}`
  return {
    get(holder, node, uid) {
      const found = all.get(name(holder, node))
      return found?.uid === uid ? found.status : undefined
    },
    set(holder, node, uid, status) {
      const key = name(holder, node)
      all.set(key, { uid, status })
      ofPod.set(uid, (ofPod.get(uid) ?? new Set()).add(key))
    },
    forget(uid) {
      for (const key of ofPod.get(uid) ?? []) if (all.get(key)?.uid === uid) all.delete(key)
      ofPod.delete(uid)
    }
  }
}
