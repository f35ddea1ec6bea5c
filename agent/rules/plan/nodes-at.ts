import type { HolderNode } from './holder.ts'

type Nodes = readonly HolderNode[]

/** Below this length a scan is as fast as an index. */
const FEW = 16
const NONE: Nodes = []
/** Keyed by the list itself, which never changes: a holder that is read again has a new list. */
const indexes = new WeakMap<Nodes, ReadonlyMap<string, Nodes>>()

/**
 * The nodes of a list that have this host, in the order of the list. Hundreds of pods of one holder with thousands of nodes may end at
 * once, and every round searches the nodes of each pod. So a long list gets an index at its first use.
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
