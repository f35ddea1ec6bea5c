import type { HolderNode } from './holder.ts'

type Nodes = readonly HolderNode[]

/** Below this a look at each is as fast as a look-up. */
const FEW = 16
const NONE: Nodes = []
/** By the list itself, which never changes: a holder that is read anew has a new one. */
const indexes = new WeakMap<Nodes, ReadonlyMap<string, Nodes>>()

/**
 * The nodes of a list that have this host, in its order. Hundreds of pods of one holder with thousands of nodes may end
 * at once, and each asks in every round: a long list is indexed when it is first asked.
 */
export function nodesAt(nodes: Nodes, host: string): Nodes {
  if (nodes.length < FEW) return nodes.filter(node => node.host === host)
  let index = indexes.get(nodes)
  if (!index) {
    index = Map.groupBy(nodes, node => node.host)
    indexes.set(nodes, index)
  }
  return index.get(host) ?? NONE
}
