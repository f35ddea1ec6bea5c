import type { Evidence, Wanted } from '../../rules/proof/evidence.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Memory } from './memory.ts'

/**
 * The nodes for which the gateways must be read. Reads begin once every removal is accepted, because earlier reads do not count. Nodes that
 * the agent may not write are removed by other writers, and only the gateways show that. `undefined`: no reads are needed yet, or any more.
 */
export function wantedEvidence(
  drain: Drain,
  memory: Memory,
  evidence: Evidence | undefined
): Wanted | undefined {
  if (drain.phase !== 'draining' || !evidence || evidence.inventoryAt === undefined) return undefined
  const through = evidence.holders.filter(({ state }) => state === 'foreign').map(({ key }) => key)
  const removed: number[] = []
  for (const { holder, removedAt } of memory.places.values()) {
    if (removedAt !== undefined) removed.push(removedAt)
    else if (!through.includes(holder.key)) return undefined
  }
  return { uid: drain.uid, nodes: evidence.nodes, since: Math.max(drain.since, ...removed), through }
}
