import type { Millis } from '../drain/facts.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'

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
