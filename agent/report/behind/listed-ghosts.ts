import type { Drain } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { Ghost } from '../../rules/members/ghost-nodes.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import type { Memory } from '../../round/gather/memory.ts'

interface World {
  readonly holders: ReadonlyMap<HolderKey, Holder>
  /** The ghosts of the last listing, whether the agent drained their pods or not. */
  readonly found: ReadonlyMap<HolderKey, readonly Ghost[]>
  readonly drains: Iterable<Drain>
  readonly memory: (uid: Drain['uid']) => Memory
}

/** The ghosts of each holder, each once with its earliest time: nodes that outlived a drained pod, and those of the last listing. */
export function listedGhosts({
  holders,
  found,
  drains,
  memory
}: World): ReadonlyMap<HolderKey, ReadonlyMap<NodeKey, Millis>> {
  const all = new Map<HolderKey, Map<NodeKey, Millis>>()
  const add = (key: HolderKey, node: NodeKey, since: Millis) => {
    const nodes = all.get(key) ?? new Map<NodeKey, Millis>()
    all.set(key, nodes.set(node, Math.min(since, nodes.get(node) ?? Infinity)))
  }
  for (const drain of drains) {
    if (drain.phase !== 'gone') continue
    for (const { holder, node, removedAt } of memory(drain.uid).places.values())
      if (removedAt === undefined) add(holder.key, node, drain.at)
  }
  for (const [key, ghosts] of found) {
    // A later read of the holder may not list it any more.
    const listed = new Set(holders.get(key)?.nodes.map(node => node.key))
    for (const { node, since } of ghosts) if (listed.has(node.key)) add(key, node.key, since)
  }
  return all
}
