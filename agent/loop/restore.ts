import type { Millis, PodUid } from '../drain/facts.ts'
import type { Taken, Target } from '../gateway/removal.ts'
import { inForm } from '../gateway/settle.ts'
import type { Wish } from '../gateway/wish.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'

/** A removal that was under way when its drain was undone is over by then, in ms: no write is tried for longer. */
const LATE_MS = 15_000

/** Puts back what a drain took out, exactly and once, when its pod turns out to stay. Lives in memory: see docs/sync.md. */
export interface Restore {
  taken(taken: Taken): void
  /** The drain was undone: from now on what it took is owed. */
  undone(uid: PodUid, now: Millis): void
  /** The drain is over as drains are. */
  over(uid: PodUid): void
  /** The objects that are owed something. */
  targets(now: Millis): readonly Target[]
  /** What this object is owed, as just read. What it lists by now, or has no place for, is owed no more. */
  wishes(target: Target, found: readonly Holder[] | undefined): readonly Wish[]
}

/** @param staysAt whether the pod is still there to stay, at this address */
export function createRestore(staysAt: (uid: PodUid, host: string) => boolean): Restore {
  const taken = new Map<PodUid, Map<string, Taken>>()
  const owed = new Map<PodUid, { readonly at: Millis; readonly nodes: Map<string, Taken> }>()

  const put = (
    { uid, holder, node }: Taken,
    found: readonly Holder[] | undefined
  ): HolderNode | undefined => {
    const today = found?.find(({ key }) => key === holder.key)
    if (!today || today.discovery || !staysAt(uid, node.host) || !isSame(holder, today)) return undefined
    return today.nodes.some(({ key }) => key === node.key) ? undefined : inForm(today, node)
  }

  return {
    taken(one) {
      const nodes = owed.get(one.uid)?.nodes ?? taken.get(one.uid) ?? new Map<string, Taken>()
      if (!owed.has(one.uid)) taken.set(one.uid, nodes)
      nodes.set(`${one.holder.key} ${one.node.key}`, one)
    },
    undone(uid, now) {
      owed.set(uid, { at: now, nodes: taken.get(uid) ?? new Map<string, Taken>() })
      taken.delete(uid)
    },
    over: uid => void taken.delete(uid),
    targets(now) {
      for (const [uid, { at, nodes }] of owed) if (nodes.size === 0 && now > at + LATE_MS) owed.delete(uid)
      return [...owed.values()].flatMap(({ nodes }) => [...nodes.values()].map(({ target }) => target))
    },
    wishes(target, found) {
      const wishes: Wish[] = []
      for (const { nodes } of owed.values()) {
        for (const [name, one] of nodes) {
          if (one.target.resource !== target.resource || one.target.id !== target.id) continue
          const node = put(one, found)
          if (node) wishes.push({ holder: one.holder.key, put: [node], remove: [] })
          else nodes.delete(name)
        }
      }
      return wishes
    }
  }
}

/** A traffic-split rule is named by its place in a list, and the list may have changed: one node in common tells. */
function isSame(before: Holder, today: Holder): boolean {
  if (before.path[0] !== 'plugins') return true
  const known = new Set(before.nodes.map(({ key }) => key))
  return today.nodes.some(({ key }) => known.has(key))
}
