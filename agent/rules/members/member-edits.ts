import type { NodeKey } from '../drain/facts.ts'
import { serviceName, type Claim } from './claim.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'
import { SYNCED_FOR } from './node-mark.ts'

/** A node in the form in which it should be written. */
export interface NewNode {
  readonly key: NodeKey
  readonly weight: number
  /** The node whose priority it gets; `undefined`: none. */
  readonly like: HolderNode | undefined
  /** Array form only. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** The edits of one holder, relative to the object that was read. */
interface SyncEdit {
  readonly add: readonly NewNode[]
  readonly remove: readonly NodeKey[]
}

interface SyncInput {
  readonly claim: Claim
  /** See `membersOf`. */
  readonly members: ReadonlySet<NodeKey>
  readonly holder: Holder
  /** Whether it is a pod's node: a pod has its address, its address is in a range of pods, or the node was a member before. */
  readonly isPods: (node: HolderNode) => boolean
  /** Whether it is, or was, an endpoint of the claim's Service. */
  readonly isOwn: (node: HolderNode) => boolean
  /** Whether no pod has this node's address now. */
  readonly isGone: (node: HolderNode) => boolean
  /** Whether a drain removes the node. A drain has its own order: first the barrier, then the removal. */
  readonly isDraining: (node: HolderNode) => boolean
  /** The state of Kubernetes is current. If it may be old, nothing is removed. */
  readonly current: boolean
}

/** The weight of new nodes if the holder lists no node of their Service. */
const DEFAULT_WEIGHT = 100

/**
 * The edits after which the holder lists the members. A node that is not a pod's (a machine, a domain name) stays unchanged, with its
 * weight and metadata.
 *
 * If no member is left, nodes whose pods exist stay. An unready pod is better than a 503, and if every pod of a Service becomes unready at
 * once, the pods are seldom the cause. Nodes whose pods are gone are removed, even the last one. No pod answers there: a request would wait
 * for the connect timeout instead of getting its 503 at once. Besides, another pod will get the address.
 */
export function planSync(input: SyncInput): SyncEdit {
  const { claim, members, holder, isPods, isDraining, isGone, current } = input
  const listed = new Set(holder.nodes.map(node => node.key))
  const metadata = holder.form === 'array' ? { [SYNCED_FOR]: serviceName(claim.service) } : undefined
  // Other nodes of a mixed list (a machine, a backup of lower priority) are no model for a pod.
  const own = holder.nodes.filter(input.isOwn)
  const like = own.find(node => node.weight > 0) ?? own[0]
  const weight = like?.weight ?? DEFAULT_WEIGHT
  const add = [...members]
    .filter(key => !listed.has(key))
    .map((key): NewNode => ({ key, weight, like, ...(metadata && { metadata }) }))
  const remove = holder.nodes
    .filter(node => current && !members.has(node.key) && isPods(node) && !isDraining(node))
    .filter(node => members.size > 0 || isGone(node))
    .map(node => node.key)
  return { add, remove }
}
