import type { Target, Written } from '../gateway/write/removal.ts'
import { inForm } from '../gateway/write/reconcile.ts'
import type { Wish } from '../gateway/write/wish.ts'
import type { Millis, NodeKey } from '../rules/drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from '../rules/plan/holder.ts'

/**
 * When the object of a write without an answer is read again, in ms after the write. A request that was cut off may be applied late, and
 * overwrite later writes of the owner.
 */
const LOOKS_MS = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]

/**
 * Restores only the nodes that a late, unanswered write of the agent removed. A read after the write was sent still showed such a
 * node. A later read shows exactly the nodes that the write had sent, without that node.
 */
export interface Amends {
  /** Call it after each write. A write without an answer may have been applied, or may still be applied. */
  wrote(written: Written): void
  /** The objects to read again. */
  targets(now: Millis): readonly Target[]
  /** Called with every reading of an object. */
  wishes(target: Target, found: readonly Holder[]): readonly Wish[]
}

interface AmendsOptions {
  /** The pods at the node's address, by name. */
  readonly podsAt: (node: NodeKey) => string
  /** The node leads to a pod that ends, or that has ended. */
  readonly isLeaving: (node: NodeKey) => boolean
  readonly now: () => Millis
}

/** A holder that a write without an answer may still replace. */
interface OpenWrite {
  /** The lists of nodes that those writes would leave in it. */
  readonly sent: Set<string>
  /** The last reading that was not the result of one of those writes, with the pods of that moment. */
  seen: ReadonlyMap<NodeKey, { readonly node: HolderNode; readonly pods: string }>
}

interface OpenWrites {
  readonly target: Target
  readonly holders: Map<HolderKey, OpenWrite>
  at: Millis
  looks: number
}

export function createAmends({ podsAt, isLeaving, now }: AmendsOptions): Amends {
  const all = new Map<string, OpenWrites>()
  const nameOf = ({ resource, id }: Target) => `${resource}/${id}`

  return {
    wrote({ target, edits, answered }) {
      const name = nameOf(target)
      const known = all.get(name)
      if (answered && !known) return
      const open = known ?? { target, holders: new Map<HolderKey, OpenWrite>(), at: now(), looks: 0 }
      for (const { holder, remove, add } of edits) {
        if (!isReplacedWhole(holder)) continue
        const write = open.holders.get(holder.key) ?? { sent: new Set<string>(), seen: new Map() }
        // Nodes that the agent removed on purpose are no loss. An answered write that adds nodes has repaired a loss.
        write.seen = new Map([...write.seen].filter(([key]) => !remove.has(key)))
        if (answered && add.length > 0) write.sent.clear()
        const left = holder.nodes.map(({ key }) => key).filter(key => !remove.has(key))
        if (!answered) write.sent.add(listOf([...left, ...add.map(({ key }) => key)]))
        if (write.sent.size > 0) open.holders.set(holder.key, write)
        else open.holders.delete(holder.key)
      }
      if (open.holders.size > 0) all.set(name, open)
      else all.delete(name)
      if (!answered) Object.assign(open, { at: now(), looks: 0 })
    },
    targets(at) {
      const due: Target[] = []
      for (const [name, open] of all) {
        const next = LOOKS_MS[open.looks]
        if (next === undefined) all.delete(name)
        else if (at >= open.at + next) {
          open.looks += 1
          due.push(open.target)
        }
      }
      return due
    },
    wishes(target, found) {
      const open = all.get(nameOf(target))
      if (!open) return []
      return found.flatMap(holder => {
        const write = open.holders.get(holder.key)
        if (!write || holder.discovery) return []
        if (!write.sent.has(listOf(holder.nodes.map(({ key }) => key)))) {
          write.seen = new Map(holder.nodes.map(node => [node.key, { node, pods: podsAt(node.key) }]))
          return []
        }
        const listed = new Set(holder.nodes.map(({ key }) => key))
        // Another agent may have removed a pod that is gone, and another pod may have its address by now.
        const lost = [...write.seen]
          .filter(([key, { pods }]) => !listed.has(key) && !isLeaving(key) && podsAt(key) === pods)
          .map(([, { node }]) => node)
        return lost.length > 0
          ? [{ holder: holder.key, put: lost.map(node => inForm(holder, node)), remove: [] }]
          : []
      })
    }
  }
}

/** Whether a write replaces the whole list. A map is merged key by key, so it cannot lose other writers' nodes (`writeFor`). */
const isReplacedWhole = ({ form, path }: Holder): boolean => form === 'array' || path[0] === 'plugins'

const listOf = (nodes: readonly NodeKey[]): string => nodes.toSorted().join(' ')
