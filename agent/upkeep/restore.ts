import type { Millis, NodeKey, PodFact, PodUid } from '../rules/drain/facts.ts'
import type { Taken, Target } from '../gateway/write/removal.ts'
import { inForm } from '../gateway/write/reconcile.ts'
import type { Wish } from '../gateway/write/wish.ts'
import type { Holder, HolderKey, HolderNode } from '../rules/plan/holder.ts'

/** After this time, in ms, a removal that was running when its drain was undone is over: no write is retried for longer. */
const LATE_MS = 15_000

/** How long the agent waits for the next pod at a fixed address, in ms, and for how many nodes at a time. */
const RETURN_MS = 3_600_000
const RETURNS = 1000

/**
 * Restores the exact nodes that a drain removed, once, in two cases. The pod turns out to stay. Or the next pod of its workload is up at
 * the same address and port, and no other writer maintains the holder. Such pods are those of DaemonSets on their hosts, mirror pods, and
 * pods with fixed addresses. The nodes are kept only in memory: see docs/sync.md.
 */
export interface Restore {
  taken(taken: Taken): void
  /** The drain was undone, so the nodes that it removed are to be restored. */
  undone(uid: PodUid, now: Millis): void
  /** The drain has ended as usual. If the holder has no known owner, the agent waits for the next pod at its nodes. */
  over(pod: PodFact, now: Millis): void
  /** The objects with nodes to restore. */
  targets(now: Millis): readonly Target[]
  /** The nodes to restore in this object, as just read. Nodes that it lists by now, or has no place for, are not restored any more. */
  wishes(target: Target, found: readonly Holder[]): readonly Wish[]
}

interface RestoreOptions {
  /** Whether the pod stays, at this address. */
  readonly staysAt: (uid: PodUid, host: string) => boolean
  /** Whether another pod of its workload is Ready at this address and port, and stays. */
  readonly isBack: (pod: PodFact, node: HolderNode) => boolean
  /** Whether the node leads to a pod that ends, or that has ended. */
  readonly isLeaving: (node: NodeKey) => boolean
  readonly holders: () => ReadonlyMap<HolderKey, Holder>
}

export function createRestore({ staysAt, isBack, isLeaving, holders }: RestoreOptions): Restore {
  const taken = new Map<PodUid, Map<string, Taken>>()
  const returning = new Map<string, { readonly one: Taken; readonly pod: PodFact; readonly at: Millis }>()
  const owed = new Map<PodUid, { readonly at: Millis; readonly nodes: Map<string, Taken> }>()

  const put = ({ uid, holder, node }: Taken, found: readonly Holder[]): HolderNode | undefined => {
    const today = found.find(({ key }) => key === holder.key)
    if (!today || today.discovery || !staysAt(uid, node.host) || !isSame(holder, today)) return undefined
    return today.nodes.some(({ key }) => key === node.key) ? undefined : inForm(today, node)
  }

  /**
   * Whether no other writer has changed the holder's list of nodes. If one has, it knows better. Changes of the agents themselves do not
   * count.
   */
  const isOurs = ({ holder }: Taken, today: Holder): boolean => {
    const ours = [...returning.values()].filter(({ one }) => one.holder.key === holder.key)
    const known = new Set(ours.flatMap(({ one }) => one.holder.nodes.map(({ key }) => key)))
    const listed = new Set(today.nodes.map(({ key }) => key))
    const mayLack = new Set(ours.map(({ one }) => one.node.key))
    return (
      today.nodes.every(({ key }) => known.has(key)) &&
      holder.nodes.every(({ key }) => listed.has(key) || mayLack.has(key) || isLeaving(key))
    )
  }
  /** Whether the node is still to be restored; if not, it is forgotten. */
  const isAwaited = (name: string, one: Taken, today: Holder | undefined): today is Holder => {
    const is =
      today !== undefined &&
      !today.discovery &&
      isSame(one.holder, today) &&
      !today.nodes.some(({ key }) => key === one.node.key) &&
      isOurs(one, today)
    if (!is) returning.delete(name)
    return is
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
    over(pod, at) {
      for (const [name, one] of taken.get(pod.uid) ?? [])
        if (one.holder.owner === 'unknown' && pod.owner !== undefined) returning.set(name, { one, pod, at })
      taken.delete(pod.uid)
      for (const name of returning.keys()) if (returning.size > RETURNS) returning.delete(name)
    },
    targets(now) {
      const back: Target[] = []
      for (const [name, { one, pod, at }] of returning) {
        if (now > at + RETURN_MS) returning.delete(name)
        else if (isAwaited(name, one, holders().get(one.holder.key)) && isBack(pod, one.node))
          back.push(one.target)
      }
      for (const [uid, { at, nodes }] of owed) if (nodes.size === 0 && now > at + LATE_MS) owed.delete(uid)
      return [
        ...back,
        ...[...owed.values()].flatMap(({ nodes }) => [...nodes.values()].map(one => one.target))
      ]
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
      for (const [name, { one, pod }] of returning) {
        if (one.target.resource !== target.resource || one.target.id !== target.id) continue
        const today = found.find(({ key }) => key === one.holder.key)
        if (isAwaited(name, one, today) && isBack(pod, one.node))
          wishes.push({ holder: one.holder.key, put: [inForm(today, one.node)], remove: [] })
      }
      return wishes
    }
  }
}

/** The path of a traffic-split rule has its index in a list, which may have changed. A common node shows that it is the same rule. */
function isSame(before: Holder, today: Holder): boolean {
  if (before.path[0] !== 'plugins') return true
  const known = new Set(before.nodes.map(({ key }) => key))
  return today.nodes.some(({ key }) => known.has(key))
}
