import type { NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import type { Edit } from './wish.ts'

/** Removals from one object that are carried out together. */
export interface Removal {
  /** The nodes to remove, oldest first, each with its pod. */
  readonly wanted: Map<HolderKey, Map<NodeKey, PodUid>>
  /** Adds the removals that were requested meanwhile. So no write lists a node again that is known to leave. */
  readonly more: () => void
}

export interface Outcome {
  readonly holder: HolderKey
  readonly node: NodeKey
  readonly uid: PodUid
  readonly state: 'removed' | 'kept-last' | 'failed'
  readonly why: string
}

/** The edits that an object, as just read, still needs, and the outcomes that are already certain. */
interface Reconciliation {
  readonly edits: readonly Edit[]
  readonly outcomes: readonly Outcome[]
}

/**
 * Compares an object, as just read, with the nodes that should have left it. It is called before a write, so that the last-node rule
 * applies to the present object, not to the planned one. It is called after the write too, as its read-back. No node is ever added
 * here, because only the owner knows the nodes that a holder should list (docs/decisions/0024).
 */
export function reconcile({ wanted }: Pick<Removal, 'wanted'>, found: readonly Holder[]): Reconciliation {
  const edits: Edit[] = []
  const outcomes: Outcome[] = []
  for (const [key, nodes] of wanted) {
    const holder = found.find(h => h.key === key)
    const listed = new Set(holder?.nodes.map(n => n.key))
    // The plan has checked whether another node serves.
    const isLast = holder?.nodes.every(n => nodes.has(n.key)) ?? false
    for (const [node, uid] of nodes) {
      const about = { holder: key, node, uid }
      if (!listed.has(node))
        outcomes.push({ ...about, state: 'removed', why: holder ? '' : 'the holder is gone' })
      else if (isLast)
        outcomes.push({ ...about, state: 'kept-last', why: 'no other node is left in the holder' })
    }
    const remove = new Set(nodes.keys().filter(n => listed.has(n)))
    if (holder && !isLast && remove.size > 0) edits.push({ path: holder.path, remove, add: [], holder })
  }
  return { edits, outcomes }
}
