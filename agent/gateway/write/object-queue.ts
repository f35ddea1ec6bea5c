import { type Millis, type NodeKey, type PodUid, doubled } from '../../rules/drain/facts.ts'
import type { Change } from '../../rules/plan/plan.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import type { Target } from './removal.ts'
import type { Removal } from './edit.ts'

/** A finished write: when it ended, and how many nodes it removed. */
export interface Written {
  readonly at: Millis
  readonly nodes: number
}

/** How long writes are remembered, in ms, and the longest pause. */
const WINDOW_MS = 1000
/** The pause after one node, in ms. */
const STEP_MS = 40

/**
 * When the next write to an object may begin. A single removal is written at once. The more nodes have just been removed, the
 * longer the next removals are gathered (quadratic: 40 ms after one node, a second after five). This does not slow down a rolling
 * update. Hundreds of pods that end within one second cost three writes, whether they end at once or one by one.
 */
export function nextWriteAt(written: readonly Written[], now: Millis): Millis {
  const recent = written.filter(w => w.at > now - WINDOW_MS)
  const last = recent.at(-1)
  if (!last) return now
  const nodes = recent.reduce((sum, w) => sum + w.nodes, 0)
  return Math.max(now, last.at + Math.min(WINDOW_MS, STEP_MS * nodes ** 2))
}

/** The nodes to remove from one object, and when that write may begin. An object has at most one write under way. */
export interface ObjectQueue {
  readonly target: Target
  /** Queues the removal of a node. `false` if the node of this pod already waits or is under way. */
  add(holder: HolderKey, node: NodeKey, uid: PodUid): boolean
  /** Queues a read of the object, to apply its wishes (`edit.ts`). `false` if a read is queued already. */
  tend(): boolean
  /** Stops waiting for this pod (at one place only), and cancels its unsent write. */
  drop(uid: PodUid, at?: { readonly holder: HolderKey; readonly node: NodeKey }): void
  /** Takes all waiting changes as one removal, which is under way until `ended`. */
  take(): Removal
  /**
   * The removal from `take` has ended. `removed`: how many nodes were removed, for the pacing. `progress`: at least one node was
   * removed, or no wish is left. Without progress the next try is delayed, so that a refusal is not repeated in a hot loop.
   */
  ended(now: number, result: { readonly removed: number; readonly progress: boolean }): void
  readonly waiting: boolean
  /** When the next write may begin. */
  readyAt(now: number): number
}

/** The pause after a write without progress, in ms; doubled each time. */
const PAUSE_MS = { first: 500, longest: 10_000 }

type Wanted = Map<HolderKey, Map<NodeKey, PodUid>>

export const targetOf = ({ holder }: Pick<Change, 'holder'>): Target => ({
  resource: holder.resource,
  id: holder.id
})

export function createObjectQueue(target: Target): ObjectQueue {
  let waiting: Wanted = new Map()
  let underWay: Wanted = new Map()
  let tended = false
  let written: Written[] = []
  let fruitless = 0
  let notBefore = 0
  return {
    target,
    add(holder, node, uid) {
      if ((waiting.get(holder)?.get(node) ?? underWay.get(holder)?.get(node)) === uid) return false
      waiting.set(holder, (waiting.get(holder) ?? new Map<NodeKey, PodUid>()).set(node, uid))
      return true
    },
    tend() {
      const fresh = !tended
      tended = true
      return fresh
    },
    drop(uid, at) {
      for (const [holder, nodes] of [...waiting, ...underWay])
        for (const [node, owner] of nodes)
          if (owner === uid && (!at || (at.holder === holder && at.node === node))) nodes.delete(node)
      for (const [holder, nodes] of waiting) if (nodes.size === 0) waiting.delete(holder)
    },
    take() {
      underWay = waiting
      waiting = new Map()
      tended = false
      const wanted = underWay
      const more = () => {
        join(wanted, waiting)
        waiting = new Map()
      }
      return { wanted, more }
    },
    ended(now, { removed, progress }) {
      underWay = new Map()
      written = written.filter(w => w.at > now - WINDOW_MS)
      if (removed > 0) written.push({ at: now, nodes: removed })
      fruitless = progress ? 0 : fruitless + 1
      notBefore = progress ? 0 : now + doubled(PAUSE_MS, fruitless - 1)
    },
    get waiting() {
      return waiting.size > 0 || tended
    },
    readyAt: now => Math.max(notBefore, nextWriteAt(written, now))
  }
}

/** Adds the nodes of `later` to `wanted`, in their order. */
function join(wanted: Wanted, later: Wanted): void {
  for (const [holder, nodes] of later) {
    const all = wanted.get(holder) ?? new Map<NodeKey, PodUid>()
    for (const [node, uid] of nodes) all.set(node, uid)
    if (all.size > 0) wanted.set(holder, all)
  }
}
