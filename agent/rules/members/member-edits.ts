import type { NodeKey } from '../drain/facts.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'

/** A node that is missing. */
export interface NewNode {
  readonly key: NodeKey
  /** The node whose weight and priority it gets; `undefined`: no node of its Service is listed. */
  readonly like: HolderNode | undefined
}

/** The edits of one holder, relative to the object that was read. */
interface SyncEdit {
  readonly add: readonly NewNode[]
  readonly remove: readonly NodeKey[]
}

interface SyncInput {
  /** See `membersOf`. */
  readonly members: ReadonlySet<NodeKey>
  readonly holder: Holder
  /** Whether it is, or was, an endpoint of the claim's Service. */
  readonly isOwn: (node: HolderNode) => boolean
  /** Whether it is a pod's node of another Service, or of none. */
  readonly isPods: (node: HolderNode) => boolean
  /** Whether no pod has this node's address now. */
  readonly isGone: (node: HolderNode) => boolean
  /** Whether a drain removes the node. A drain has its own order: first the barrier, then the removal. */
  readonly isDraining: (node: HolderNode) => boolean
}

/**
 * The edits after which the holder lists the members. A node that is not a pod's (a machine, a domain name) stays unchanged, with its
 * weight and metadata.
 *
 * If no member is left, nodes whose pods exist stay. An unready pod is better than a 503, and if every pod of a Service becomes unready at
 * once, the pods are seldom the cause. Nodes whose pods are gone are removed, even the last one. No pod answers there: a request would wait
 * for the connect timeout instead of getting its 503 at once. Besides, another pod will get the address.
 */
export function planSync({ members, holder, isOwn, isPods, isGone, isDraining }: SyncInput): SyncEdit {
  const listed = new Set(holder.nodes.map(node => node.key))
  // Other nodes of a mixed list (a machine, a backup of lower priority) are no model for a pod.
  const own = holder.nodes.filter(isOwn)
  const like = own.find(node => node.weight > 0) ?? own[0]
  const add = [...members].filter(key => !listed.has(key)).map(key => ({ key, like }))
  const remove = holder.nodes
    .filter(node => !members.has(node.key) && (isOwn(node) || isPods(node)) && !isDraining(node))
    .filter(node => members.size > 0 || isGone(node))
    .map(node => node.key)
  return { add, remove }
}
