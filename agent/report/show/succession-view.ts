import type { Drain } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import { isEnding } from '../../rules/plan/match.ts'
import type { HolderView } from '../snapshot/holder-view.ts'
import type { Memory } from '../../round/gather/memory.ts'

type OnSuccessors = NonNullable<HolderView['onSuccessors']>

/**
 * The holders without a node that serves: every node that would get requests there is to be sealed. Its entry may name successors
 * that the owner has not listed yet. Discovery is left out, because no listing has its nodes.
 */
export function holdersOnSuccessors(
  drains: readonly Drain[],
  memory: (uid: PodUid) => Memory,
  inventory: Pick<Inventory, 'holders'>
): ReadonlyMap<HolderKey, OnSuccessors> {
  const sealed = new Map<HolderKey, Map<NodeKey, OnSuccessors>>()
  for (const drain of drains) {
    const { places, successors, sealing } = memory(drain.uid)
    const nodes = [...new Set(Object.values(successors).flat())]
    if (!isEnding(drain) || (drain.phase === 'draining' && !sealing)) continue
    for (const { holder, node, removedAt } of places.values()) {
      if (removedAt !== undefined || holder.discovery) continue
      const known = sealed.get(holder.key) ?? new Map<NodeKey, OnSuccessors>()
      sealed.set(holder.key, known.set(node, { since: drain.since, nodes }))
    }
  }
  return new Map(
    [...sealed].flatMap(([key, known]) => {
      const listed = inventory.holders().get(key)?.nodes ?? []
      const chosen = listed.some(({ weight }) => weight > 0)
        ? listed.filter(({ weight }) => weight > 0)
        : listed
      const found = chosen.map(node => known.get(node.key)).filter(one => one !== undefined)
      if (found.length === 0 || found.length < chosen.length) return []
      return [
        [key, { since: sinceWhen(found), nodes: [...new Set(found.flatMap(({ nodes }) => nodes))].sort() }]
      ]
    })
  )
}

/** When the last pod that the place lists began to end. */
const sinceWhen = (found: readonly OnSuccessors[]): Millis => Math.max(...found.map(({ since }) => since))
