import type { Millis, NodeKey } from '../drain/facts.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'
import type { NewNode } from './member-edits.ts'

/** The facts about addresses without a pod. */
export interface AddressesKnown {
  /** Whether a pod's object, a slice or a drain has the address. */
  isTaken(host: string): boolean
  /** When the last pod with this address was seen to end; `undefined`: never. */
  endedAt(host: string): Millis | undefined
  /** Whether only pods have addresses in this address's range. */
  isPodRange(host: string): boolean
  /** When the address was first seen without a pod; `undefined`: not seen yet. */
  freeSince(host: string): Millis | undefined
}

/** A node whose pod is gone, and the reason to believe it. */
export interface Ghost {
  readonly node: HolderNode
  readonly evidence: string
  /** When its pod was seen to end, or when the address was first seen without a pod. */
  readonly since: Millis
}

/**
 * The ghosts of one holder. A node without a pod may also be a machine, or a pod of another cluster. The node is a ghost if the agent saw
 * the pod with its address end. It is a ghost too if only pods have such addresses, and no pod has had this address for `afterMs`.
 */
export function ghostsIn(
  holder: Holder,
  known: AddressesKnown,
  now: Millis,
  afterMs: number
): readonly Ghost[] {
  if (holder.discovery) return []
  return holder.nodes.flatMap(node => {
    if (known.isTaken(node.host)) return []
    const endedAt = known.endedAt(node.host)
    if (endedAt !== undefined) return [{ node, evidence: 'its pod was seen to end', since: endedAt }]
    const since = known.isPodRange(node.host) ? known.freeSince(node.host) : undefined
    if (since === undefined || now < since + afterMs) return []
    return [{ node, evidence: `no pod has had its address for ${Math.round((now - since) / 1000)} s`, since }]
  })
}

/** The changes of one write in a holder with ghosts. */
interface GhostRepair {
  readonly put: readonly NewNode[]
  readonly remove: readonly NodeKey[]
}

/**
 * The write that removes the ghosts. All are removed if another node would be picked, or if successors take over, which the same write
 * adds. Otherwise one ghost stays, because APISIX answers 503 for a holder without a node. A node of weight 0 is not picked while others
 * have a weight.
 */
export function repairOf(
  holder: Holder,
  ghosts: readonly Ghost[],
  successors: (node: NodeKey) => readonly NodeKey[]
): GhostRepair {
  const dead = new Set(ghosts.map(({ node }) => node.key))
  const carrying = holder.nodes.filter(({ weight }) => weight > 0)
  const candidates = carrying.length > 0 ? carrying : holder.nodes
  const [last] = candidates
  if (!last || candidates.some(({ key }) => !dead.has(key))) return { put: [], remove: [...dead] }
  const next = new Set(candidates.flatMap(({ key }) => successors(key)))
  if (next.size === 0) return { put: [], remove: [...dead].filter(key => key !== last.key) }
  return { put: [...next].map(key => ({ key, weight: last.weight, like: last })), remove: [...dead] }
}
