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
    const present = [...nodes.keys()].filter(n => listed.has(n))
    const kept = holder && lastToLeave(holder, present)
    for (const [node, uid] of nodes) {
      const about = { holder: key, node, uid }
      if (node === kept) outcomes.push({ ...about, state: 'kept-last', why: 'the last node of the holder' })
      else if (!listed.has(node))
        outcomes.push({ ...about, state: 'removed', why: holder ? '' : 'the holder is gone' })
    }
    const remove = new Set(present.filter(n => n !== kept))
    if (holder && remove.size > 0) edits.push({ path: holder.path, remove, add: [], holder })
  }
  return { edits, outcomes }
}

/**
 * The node to keep if no node of the holder would stay: of the nodes with a weight, the node whose pod was the last to end. If another
 * node stays: `undefined`. Nodes of weight 0 that stay take over (measured on APISIX 3.18: they are chosen if no other weight is left);
 * the plan has checked whether they serve.
 */
function lastToLeave(holder: Holder, leaving: readonly NodeKey[]): NodeKey | undefined {
  if (holder.nodes.some(n => !leaving.includes(n.key))) return undefined
  const drawing = holder.nodes.filter(n => n.weight > 0)
  const candidates = drawing.length > 0 ? drawing : holder.nodes
  return leaving.findLast(key => candidates.some(n => n.key === key))
}
