import type { NodeKey } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from '../../rules/plan/holder.ts'
import type { NewNode } from '../../rules/members/member-edits.ts'
import type { HolderEdit } from './edit.ts'
import { nodeOf } from '../apisix/nodes.ts'

/** The nodes that should be put into one holder or removed from it, for another reason than a drain. */
export interface Wish {
  readonly holder: HolderKey
  /** Whole nodes in the holder's form. A node that is already listed is replaced. */
  readonly put: readonly HolderNode[]
  readonly remove: readonly NodeKey[]
}

export type Edit = HolderEdit & { readonly holder: Holder }

/**
 * One edit per holder for both drains and wishes. A wish alone may empty a holder, because its author knows that no pod is left to
 * answer. A wish and a drain together may not empty a holder: each relies on the node that the other would remove.
 */
export function withWishes(
  edits: readonly Edit[],
  wishes: readonly Wish[],
  found: readonly Holder[]
): readonly Edit[] {
  const all = new Map(edits.map(edit => [edit.holder.key, edit]))
  for (const wish of wishes) {
    const holder = found.find(({ key }) => key === wish.holder)
    if (!holder || holder.discovery || wish.put.length + wish.remove.length === 0) continue
    all.set(holder.key, joined(all.get(holder.key), wish, holder))
  }
  return [...all.values()]
}

function joined(drained: Edit | undefined, wish: Wish, holder: Holder): Edit {
  const add = wish.put.filter(({ key }) => !drained?.remove.has(key))
  const remove = new Set([...(drained?.remove ?? []), ...wish.remove])
  const empties = add.length === 0 && holder.nodes.every(({ key }) => remove.has(key))
  if (drained) return { path: holder.path, holder, add, remove: empties ? drained.remove : remove }
  return { path: holder.path, holder, add, remove, mayEmpty: true }
}

/** A new node, in the holder's form, with weight and priority of the node that it is like. */
export const nodeFor = ({ key, like = LIKE_NONE }: NewNode, holder: Holder): HolderNode =>
  nodeOf(key, like, holder.form)

/** The template for a node that is like no other. */
const LIKE_NONE: HolderNode = { key: '', host: '', port: undefined, weight: 100, raw: {} }
