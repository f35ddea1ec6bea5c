import { type NodeKey, type PodUid, doubled } from '../../rules/drain/facts.ts'
import type { Change } from '../../rules/plan/plan.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import type { Target } from './removal.ts'
import type { Wanted } from './edit.ts'

/** From a write to the next one, in ms: hundreds of pods that end within one second then cost four writes. */
const GATHER_MS = 350

/** The pause after a write without progress, in ms; doubled each time. */
const PAUSE_MS = { first: 100, longest: 10_000 }

export const targetOf = ({ holder }: Pick<Change, 'holder'>): Target => ({
  resource: holder.resource,
  id: holder.id
})

/** The nodes to remove from one object, and when that write may begin. An object has at most one write under way. */
export type ObjectQueue = ReturnType<typeof createObjectQueue>

export function createObjectQueue(target: Target) {
  let waiting: Wanted = new Map()
  let underWay: Wanted = new Map()
  let tended = false
  let fruitless = 0
  let notBefore = 0
  return {
    target,
    /** Queues the removal of a node. `false` if the node of this pod already waits or is under way. */
    add(holder: HolderKey, node: NodeKey, uid: PodUid): boolean {
      if ((waiting.get(holder)?.get(node) ?? underWay.get(holder)?.get(node)) === uid) return false
      waiting.set(holder, (waiting.get(holder) ?? new Map<NodeKey, PodUid>()).set(node, uid))
      return true
    },
    /** Queues a read of the object, to apply its wishes (`edit.ts`). `false` if a read is queued already. */
    tend(): boolean {
      const fresh = !tended
      tended = true
      return fresh
    },
    /** Stops waiting for this pod (at one place only), and cancels its unsent write. */
    drop(uid: PodUid, at?: { readonly holder: HolderKey; readonly node: NodeKey }) {
      for (const [holder, nodes] of [...waiting, ...underWay])
        for (const [node, owner] of nodes)
          if (owner === uid && (!at || (at.holder === holder && at.node === node))) nodes.delete(node)
      for (const [holder, nodes] of waiting) if (nodes.size === 0) waiting.delete(holder)
    },
    /** Takes all waiting changes as one removal, which is under way until `ended`. */
    take(): Wanted {
      underWay = waiting
      waiting = new Map()
      tended = false
      return underWay
    },
    /**
     * The removal from `take` has ended. `wrote`: the object was changed. `progress`: at least one node was removed, or no wish is left.
     * Without progress the next try is delayed, so that a refusal is not repeated in a hot loop. Returns how many in a row had none.
     */
    ended(now: number, { wrote, progress }: { readonly wrote: boolean; readonly progress: boolean }) {
      underWay = new Map()
      fruitless = progress ? 0 : fruitless + 1
      notBefore = now + (progress ? (wrote ? GATHER_MS : 0) : doubled(PAUSE_MS, fruitless - 1))
      return fruitless
    },
    get waiting() {
      return waiting.size > 0 || tended
    },
    /** When the next write may begin. */
    readyAt: () => notBefore
  }
}
