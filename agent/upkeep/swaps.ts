import type { Millis, NodeKey, PodFact } from '../rules/drain/facts.ts'
import { inForm } from '../gateway/write/reconcile.ts'
import type { Target } from '../gateway/write/removal.ts'
import type { Wish } from '../gateway/write/wish.ts'
import type { Holder, HolderKey, HolderNode } from '../rules/plan/holder.ts'

/** How long the agent waits for the next pod at a ghost's address, in ms. */
const RETURN_MS = 3_600_000

/** A write that removed all ghosts from a holder and added the pods that follow. */
interface Swap {
  readonly target: Target
  readonly ghosts: readonly { readonly node: HolderNode; readonly pod: PodFact }[]
  readonly put: readonly NodeKey[]
  readonly at: Millis
}

/**
 * Lists the node of a ghost again if the next pod of the workload has its address (DaemonSets on their hosts, fixed addresses). The
 * pods that were added stay: they serve, and no write of the agent removes a pod that stays.
 */
export interface Swaps {
  add(holder: HolderKey, swap: Swap): void
  /** The objects to write. */
  targets(now: Millis): readonly Target[]
  /** The wishes for one object. If another writer has added a ghost's node or removed all new nodes, the holder is left to that writer. */
  wishes(target: Target, found: readonly Holder[]): readonly Wish[]
}

/** @param isBack another pod of this pod's workload is Ready at this node, and stays */
export function createSwaps(isBack: (pod: PodFact, node: HolderNode) => boolean): Swaps {
  const swaps = new Map<HolderKey, Swap>()
  const back = ({ ghosts }: Swap) => ghosts.filter(({ pod, node }) => isBack(pod, node))

  return {
    add: (holder, swap) => void swaps.set(holder, swap),
    targets(now) {
      for (const [key, { at }] of swaps) if (now > at + RETURN_MS) swaps.delete(key)
      return [...swaps.values()].filter(swap => back(swap).length > 0).map(({ target }) => target)
    },
    wishes(target, found) {
      return found.flatMap((today): Wish[] => {
        const swap = swaps.get(today.key)
        const nodes = swap ? back(swap) : []
        if (!swap || nodes.length === 0 || swap.target.id !== target.id) return []
        const listed = new Set(today.nodes.map(({ key }) => key))
        if (!swap.put.some(key => listed.has(key)) || swap.ghosts.some(({ node }) => listed.has(node.key))) {
          swaps.delete(today.key)
          return []
        }
        return [{ holder: today.key, put: nodes.map(({ node }) => inForm(today, node)), remove: [] }]
      })
    }
  }
}
