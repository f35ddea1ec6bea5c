import type { NodeKey, PodUid } from '../drain/facts.ts'
import type { Change } from '../plan/change.ts'
import type { HolderKey } from '../plan/holder.ts'
import type { Target } from './removal.ts'
import type { Removal } from './settle.ts'
import { WINDOW_MS, nextWriteAt, type Written } from './pacing.ts'

/** What waits to be taken out of one object, and when that may be written. At most one write of an object is under way. */
export interface ObjectQueue {
  readonly target: Target
  /** `false` when that pod's node is already waiting or under way. */
  add(holder: HolderKey, node: NodeKey, uid: PodUid): boolean
  /** Stops waiting for this pod, and takes it out of what is under way as far as it is not written yet. */
  drop(uid: PodUid): void
  /** Everything that waits, as one removal; it is under way until `ended`. */
  take(): Removal
  /** `progress`: some node went. Without any the next try is put off, so that a refusal is not repeated in a hot loop. */
  ended(now: number, result: { readonly removed: number; readonly progress: boolean }): void
  readonly waiting: boolean
  readyAt(now: number): number
}

/** After a write without progress, in ms; doubled each time. */
const PAUSE_MS = { first: 500, longest: 10_000 }

type Wanted = Map<HolderKey, Map<NodeKey, PodUid>>

export const targetOf = ({ holder }: Change): Target => ({ resource: holder.resource, id: holder.id })

export function createObjectQueue(target: Target): ObjectQueue {
  let waiting: Wanted = new Map()
  let underWay: Wanted = new Map()
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
    drop(uid) {
      for (const nodes of [...waiting.values(), ...underWay.values()])
        for (const [node, owner] of nodes) if (owner === uid) nodes.delete(node)
      for (const [holder, nodes] of waiting) if (nodes.size === 0) waiting.delete(holder)
    },
    take() {
      underWay = waiting
      waiting = new Map()
      return { wanted: underWay, sent: new Map() }
    },
    ended(now, { removed, progress }) {
      underWay = new Map()
      written = written.filter(w => w.at > now - WINDOW_MS)
      if (removed > 0) written.push({ at: now, nodes: removed })
      fruitless = progress ? 0 : fruitless + 1
      notBefore = progress ? 0 : now + Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** (fruitless - 1))
    },
    get waiting() {
      return waiting.size > 0
    },
    readyAt: now => Math.max(notBefore, nextWriteAt(written, now))
  }
}
