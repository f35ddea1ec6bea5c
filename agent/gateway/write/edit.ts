import type { AdminObject } from '../apisix/admin-api.ts'
import type { Holder, HolderKey, HolderNode } from '../../rules/plan/holder.ts'
import { editNodes, nodesPatch, nodeOf, type NodeEdit, type RawNodes } from '../apisix/holders.ts'
import { isRecord } from '../../base/read.ts'
import type { NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { NewNode } from '../../rules/members/members.ts'

/** An edit of one upstream inside an object. */
interface HolderEdit extends NodeEdit {
  readonly path: Holder['path']
}

/** One request that carries out all edits of one object. */
type Write =
  | { readonly method: 'patch'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly method: 'put'; readonly body: Readonly<Record<string, unknown>> }

/**
 * One write for all edits of an object: a merge-PATCH, which changes only nodes. (The sub-path form, `PATCH /upstreams/web/nodes`,
 * does the same for an array, but can only edit one holder.) If a map has become an array since `object` was read, APISIX refuses the
 * `null` of the merge with 400. An array overwrites any list in APISIX, so the write needs the read-back.
 *
 * Nodes below a list, as in a plugin's rules, are written with the whole list. Consumers have no PATCH (admin/consumers.lua), so the whole
 * consumer is put.
 *
 * @throws RangeError if a holder would be left with no node
 */
export function writeFor(object: AdminObject, edits: readonly HolderEdit[]): Write {
  const whole = edited(object.value, edits)
  if (object.resource === 'consumers') return { method: 'put', body: writable(whole) }
  const body: Record<string, unknown> = {}
  for (const edit of edits) {
    const list = edit.path.findIndex(step => typeof step === 'number')
    const path = list < 0 ? [...edit.path, 'nodes'] : edit.path.slice(0, list)
    const nodes = () => nodesPatch(at(object.value, path) as RawNodes, edit)
    set(body, path, list < 0 ? nodes() : at(whole, path))
  }
  return { method: 'patch', body }
}

function edited(value: AdminObject['value'], edits: readonly HolderEdit[]): Record<string, unknown> {
  const whole = structuredClone(value) as Record<string, unknown>
  for (const edit of edits) {
    const upstream = at(whole, edit.path)
    if (isRecord(upstream)) upstream.nodes = editNodes(upstream.nodes as RawNodes, edit)
  }
  return whole
}

/** The object without its times, which APISIX writes itself. */
function writable(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { create_time: _created, update_time: _updated, ...rest } = value
  return rest
}

function at(value: unknown, path: Holder['path']): unknown {
  return path.reduce<unknown>(
    (inner, step) => (inner as Record<string | number, unknown> | undefined)?.[step],
    value
  )
}

/** Sets the value at this path, and makes the objects on the way. */
function set(body: Record<string, unknown>, [step = '', ...inner]: Holder['path'], value: unknown): void {
  if (inner.length === 0) body[step] = value
  else set((body[step] ??= {}) as Record<string, unknown>, inner, value)
}

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

/** A new node, in the holder's form, with the weight and priority of a similar node. */
export const nodeFor = ({ key, like = LIKE_NONE }: NewNode, holder: Holder): HolderNode =>
  nodeOf(key, like, holder.form)

/** The template for a node that is like no other. */
const LIKE_NONE: HolderNode = { key: '', host: '', port: undefined, weight: 100, raw: {} }

/** The nodes to remove from one object together, oldest first, each with its pod. */
export type Wanted = Map<HolderKey, Map<NodeKey, PodUid>>

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
export function reconcile(wanted: Wanted, found: readonly Holder[]): Reconciliation {
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
