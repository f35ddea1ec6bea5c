import type { NodeKey, PodUid } from '../drain/facts.ts'
import type { Holder, HolderKey, HolderNode } from '../plan/holder.ts'
import type { HolderEdit } from './edit.ts'
import { nodeOf } from '../apisix/nodes.ts'
import { writerOf } from '../apisix/owner.ts'

/** Removals from one object that are carried out together, and what has been tried so far. */
export interface Removal {
  /** The nodes to take out, oldest first, with the pod each stands for. */
  readonly wanted: Map<HolderKey, Map<NodeKey, PodUid>>
  /** Takes in what has come to be wanted since: no write lists a node again that is known to leave. */
  readonly more: () => void
  /** Holders before the agent's last write to them; `accepted` once APISIX answered 200. */
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

/** What is to be written to bring an object, as just read, to where it should be, and what stands without writing. */
interface Reconciliation {
  readonly edits: readonly (HolderEdit & { readonly holder: Holder })[]
  readonly outcomes: readonly Outcome[]
}

/**
 * Compares an object as just read with what should have left it. Called before every write (so the last-node rule
 * is held against the object as it is, not as it was planned) and after it (so it is the read-back as well):
 *
 *     read -> reconcile -> write -> read -> reconcile -> nothing left to write
 *
 * A holder that another writer emptied together with us gets back a node that we took, and that is all that is ever added:
 * what a holder should list is its owner's to know (docs/decisions/0024).
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
 * The node to keep where all are to go: one that draws requests, and of those the one that began to end last. Nodes of weight 0 that stay take over
 * (apisix-measured: where nothing of another weight is left they are chosen); whether they serve, the plan has asked.
 */
function lastToLeave(holder: Holder, leaving: readonly NodeKey[]): NodeKey | undefined {
  if (holder.nodes.some(n => !leaving.includes(n.key))) return undefined
  const drawing = holder.nodes.filter(n => n.weight > 0)
  const candidates = drawing.length > 0 ? drawing : holder.nodes
  return leaving.findLast(key => candidates.some(n => n.key === key))
}

/** What our last write of this holder took, where nothing is left in it. */
function owed(
  holder: Holder,
  sent: { readonly before: Holder; readonly removed: ReadonlySet<NodeKey> }
): readonly HolderNode[] {
  const last =
    holder.nodes.length === 0 ? sent.before.nodes.findLast(n => sent.removed.has(n.key)) : undefined
  return last ? [inForm(holder, last)] : []
}

/** Where both the last write and the holder's form changed hands, the node is written in today's form. */
export const inForm = (holder: Holder, node: HolderNode): HolderNode =>
  (typeof node.raw === 'string') === (holder.form === 'map') ? node : nodeOf(node.key, node, holder.form)
