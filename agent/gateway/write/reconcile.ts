import type { NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from '../../rules/plan/holder.ts'
import type { HolderEdit } from './edit.ts'
import { nodeOf } from '../apisix/nodes.ts'
import { writerOf } from '../apisix/owner.ts'

/** Removals from one object that are carried out together, and their tries so far. */
export interface Removal {
  /** The nodes to remove, oldest first, each with its pod. */
  readonly wanted: Map<HolderKey, Map<NodeKey, PodUid>>
  /** Adds the removals that were requested meanwhile. So no write lists a node again that is known to leave. */
  readonly more: () => void
  /** Holders as they were before the agent's last write to them; `accepted` once APISIX has answered that write with 200. */
  readonly sent: Map<
    HolderKey,
    { readonly before: Holder; readonly removed: ReadonlySet<NodeKey>; accepted: boolean }
  >
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
  readonly edits: readonly (HolderEdit & { readonly holder: Holder })[]
  readonly outcomes: readonly Outcome[]
}

/**
 * Compares an object, as just read, with the nodes that should have left it. It is called before every write, so that the last-node
 * rule applies to the present object, not to the planned one. It is also called after the write, so it is the read-back too:
 *
 *     read -> reconcile -> write -> read -> reconcile -> nothing left to write
 *
 * If another writer and the agent have emptied a holder together, the holder gets back a node that the agent removed. No other node is
 * ever added here, because only the owner knows the nodes that a holder should list (docs/decisions/0024).
 */
export function reconcile(
  removal: Pick<Removal, 'wanted' | 'sent'>,
  found: readonly Holder[]
): Reconciliation {
  const edits: (HolderEdit & { holder: Holder })[] = []
  const outcomes: Outcome[] = []
  for (const [key, wanted] of removal.wanted) {
    const holder = found.find(h => h.key === key)
    const sent = removal.sent.get(key)
    const say = (node: NodeKey, state: Outcome['state'], why: string) => {
      const uid = wanted.get(node)
      if (uid !== undefined) outcomes.push({ holder: key, node, uid, state, why })
    }
    const listed = new Set(holder?.nodes.map(n => n.key))
    const back = new Set(sent?.accepted ? [...sent.removed].filter(n => listed.has(n)) : [])
    const present = [...wanted.keys()].filter(n => listed.has(n) && !back.has(n))
    const kept = holder && lastToLeave(holder, present)
    const add = holder && sent ? owed(holder, sent) : []
    const remove = new Set(present.filter(n => n !== kept))
    const returned = new Set(add.map(n => n.key))

    for (const node of wanted.keys()) {
      if (returned.has(node) || node === kept) say(node, 'kept-last', 'the last node of the holder')
      else if (holder && back.has(node)) say(node, 'failed', `put back at once by ${writerOf(holder)}`)
      else if (!listed.has(node)) say(node, 'removed', holder ? '' : 'the holder is gone')
    }
    if (holder && (remove.size > 0 || add.length > 0)) edits.push({ path: holder.path, remove, add, holder })
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

/** If the holder is empty now, a node that the agent's last write removed from it; otherwise none. */
function owed(
  holder: Holder,
  sent: { readonly before: Holder; readonly removed: ReadonlySet<NodeKey> }
): readonly HolderNode[] {
  const last =
    holder.nodes.length === 0 ? sent.before.nodes.findLast(n => sent.removed.has(n.key)) : undefined
  return last ? [inForm(holder, last)] : []
}

/** The node in the current form of the holder, which may have changed since the last write. */
export const inForm = (holder: Holder, node: HolderNode): HolderNode =>
  (typeof node.raw === 'string') === (holder.form === 'map') ? node : nodeOf(node.key, node, holder.form)
