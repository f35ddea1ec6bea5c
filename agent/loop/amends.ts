import { nodeOf } from '../gateway/nodes.ts'
import type { Target, Written } from '../gateway/removal.ts'
import type { Wish } from '../gateway/wish.ts'
import type { Millis, NodeKey } from '../drain/facts.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'

/** How long after the write of an array it may turn out that Kubernetes was not heard of any more, in ms. */
const BLIND_MS = 3000
/**
 * How long after a write in doubt its object is looked at again, in ms: a request that was cut off can be applied late. What
 * somebody takes out on purpose is put back at these looks, and after the last one no more.
 */
const LOOKS_MS = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]

/**
 * Looks again at what a write of ours may have broken after it was read back, and puts it back: a write without an answer
 * may be applied later, over what an owner has written meanwhile; what an array of ours overwrote cannot be told while
 * Kubernetes is not heard of; and an address that was asked for may have changed hands before the write.
 */
export interface Amends {
  /** The writer wrote, or (no answer came) may have written or be writing still. */
  wrote(written: Written): void
  /** The objects to look at. */
  targets(now: Millis): readonly Target[]
  wishes(target: Target, found: readonly Holder[] | undefined): readonly Wish[]
}

export interface AmendsOptions {
  /** The nodes that a holder should list, as far as Kubernetes can tell. */
  readonly expected: (holder: Holder) => readonly NodeKey[]
  /** A pod that is there to stay has this node's address. */
  readonly staysAt: (node: NodeKey) => boolean
  /** The pod there was seen to be deleted, and its hook has not been answered: the address is sure to be its. */
  readonly isSurelyEnding: (node: NodeKey) => boolean
  /** What Kubernetes says is as of now. */
  readonly isCurrent: () => boolean
  readonly now: () => Millis
}

interface Doubt {
  readonly target: Target
  /** What each holder listed before every write in doubt, less what these took out: not lost by them. */
  readonly safe: Map<HolderKey, ReadonlySet<NodeKey>>
  /** Only then it is looked at: until then nothing speaks against what was read back. */
  isOpen: boolean
  at: Millis
  looks: number
}

export function createAmends({ expected, staysAt, isSurelyEnding, isCurrent, now }: AmendsOptions): Amends {
  const doubts = new Map<string, Doubt>()
  const nameOf = ({ resource, id }: Target) => `${resource}/${id}`

  const isSure = ({ answered, edits }: Written): boolean =>
    answered && edits.every(({ remove }) => [...remove].every(isSurelyEnding))

  return {
    wrote(written) {
      const { target, edits } = written
      const known = doubts.get(nameOf(target))
      const sure = isSure(written)
      if (sure && !known && edits.every(({ holder }) => holder.form === 'map')) return
      const doubt = known ?? newDoubt(target, now())
      doubts.set(nameOf(target), doubt)
      for (const { holder, remove } of edits) {
        const safe = new Set(holder.nodes.map(({ key }) => key)).difference(remove)
        doubt.safe.set(holder.key, doubt.safe.get(holder.key)?.intersection(safe) ?? safe)
      }
      if (!sure || !doubt.isOpen) Object.assign(doubt, { isOpen: doubt.isOpen || !sure, at: now(), looks: 0 })
    },
    targets(at) {
      const due: Target[] = []
      const blind = !isCurrent()
      for (const [name, doubt] of doubts) {
        // Nothing is to be seen until Kubernetes is heard of again.
        if (blind) Object.assign(doubt, { isOpen: true, at, looks: 0 })
        const next = doubt.isOpen ? LOOKS_MS[doubt.looks] : BLIND_MS
        if (next !== undefined && at < doubt.at + next) continue
        if (next === undefined || !doubt.isOpen) doubts.delete(name)
        else {
          doubt.looks += 1
          due.push(doubt.target)
        }
      }
      return due
    },
    wishes(target, found = []) {
      const doubt = doubts.get(nameOf(target))
      if (!doubt?.isOpen || !isCurrent()) return []
      return found.flatMap(holder => {
        const safe = doubt.safe.get(holder.key)
        const [sibling] = holder.nodes.toSorted((a, b) => b.weight - a.weight)
        if (!safe || !sibling || holder.discovery) return []
        const listed = new Set(holder.nodes.map(({ key }) => key))
        const lost = expected(holder).filter(node => !listed.has(node) && !safe.has(node) && staysAt(node))
        const put = lost.map(node => nodeOf(node, sibling, holder.form))
        return put.length > 0 ? [{ holder: holder.key, put, remove: [] }] : []
      })
    }
  }
}

const newDoubt = (target: Target, at: Millis): Doubt => ({
  target,
  safe: new Map(),
  isOpen: false,
  at,
  looks: 0
})
