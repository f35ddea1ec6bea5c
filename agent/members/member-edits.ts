import type { Millis, NodeKey } from '../drain/facts.ts'
import { serviceName, type Claim } from './claim.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'
import { risingWeight } from './slow-start.ts'

/** A node as it should be written. */
export interface NewNode {
  readonly key: NodeKey
  readonly weight: number
  /** Array form only. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** How one holder should differ from what was read. */
interface SyncEdit {
  readonly add: readonly NewNode[]
  /** Nodes whose weight alone changes. */
  readonly weigh: readonly NewNode[]
  readonly remove: readonly NodeKey[]
}

interface SyncInput {
  readonly claim: Claim
  /** See `membersOf`. */
  readonly members: ReadonlySet<NodeKey>
  readonly holder: Holder
  /** Some pod has this node's address, or it lies where only pods are, or it was a member once: not a stranger's. */
  readonly isPods: (node: HolderNode) => boolean
  /** No pod has this node's address any more. */
  readonly isGone: (node: HolderNode) => boolean
  /** A drain takes it out, in its own order: the barrier first. */
  readonly isDraining: (node: HolderNode) => boolean
  /** When each member became one; absent: just now. */
  readonly since: ReadonlyMap<NodeKey, Millis>
  /** What Kubernetes says is as of now. Where it may be old, nothing is taken out. */
  readonly current: boolean
  readonly now: Millis
}

/** The full weight of new nodes where neither the Service nor a node that is there gives one. */
const DEFAULT_WEIGHT = 100
/** In the metadata of a node (array form): which Service it is there for, so that the next agent knows it for ours. */
export const SYNCED_FOR = 'apisix-drain.io/service'

/**
 * The edits after which the holder lists the members. A node that is not a pod's (a machine, a domain name) is left as it is, with its
 * weight and metadata.
 *
 * With no member left, nodes whose pods exist stay: an unready pod beats a 503, and if every pod of a Service turns
 * unready at once it is seldom their fault. Nodes whose pods are gone go all the same, the last one too: nobody answers
 * there, a request would wait for the connect timeout instead of getting its 503 at once, and the address will be another
 * pod's.
 */
export function planSync(input: SyncInput): SyncEdit {
  const { claim, members, holder, isPods, isDraining, isGone, current, since, now } = input
  const listed = new Set(holder.nodes.map(node => node.key))
  const full = fullWeight(claim, holder)
  const metadata = holder.form === 'array' ? { [SYNCED_FOR]: serviceName(claim.service) } : undefined
  const made = (key: NodeKey, weight: number): NewNode => ({ key, weight, ...(metadata && { metadata }) })
  const startedAt = (key: NodeKey): Millis => since.get(key) ?? now
  const weightOf = (key: NodeKey): number => risingWeight(full, claim.slowStartMs, now - startedAt(key))

  const add = [...members].filter(key => !listed.has(key)).map(key => made(key, weightOf(key)))
  const rising = claim.weight !== undefined || claim.slowStartMs > 0
  const own = holder.nodes.filter(({ key }) => members.has(key))
  const weigh = own
    .filter(({ key, weight }) => rising && weight !== weightOf(key))
    .map(({ key }) => made(key, weightOf(key)))
  const remove = holder.nodes
    .filter(node => current && !members.has(node.key) && isPods(node) && !isDraining(node))
    .filter(node => members.size > 0 || isGone(node))
    .map(node => node.key)
  return { add, weigh, remove }
}

/** A whole new upstream for a claim that asks for one; `undefined` while there is no node to put into it. */
export function newUpstream(
  claim: Claim,
  members: ReadonlySet<NodeKey>
): { readonly name: string; readonly nodes: readonly NewNode[] } | undefined {
  if (!claim.create || members.size === 0) return undefined
  const weight = risingWeight(claim.weight ?? DEFAULT_WEIGHT, claim.slowStartMs, 0)
  const metadata = { [SYNCED_FOR]: serviceName(claim.service) }
  return {
    name: serviceName(claim.service),
    nodes: [...members].map(key => ({ key, weight, metadata }))
  }
}

/** Of a node that has risen. While weights rise, those of the nodes that are there say nothing. */
export function fullWeight({ weight, slowStartMs }: Claim, { nodes }: Holder): number {
  if (weight !== undefined) return weight
  return (slowStartMs === 0 && nodes.find(node => node.weight > 0)?.weight) || DEFAULT_WEIGHT
}
