import type { Drain } from '../drain/drain.ts'
import type { NodeKey } from '../drain/facts.ts'
import { hasFixedAddress } from '../drain/workload.ts'
import type { Holder, HolderNode } from './holder.ts'
import type { PlanSettings } from './world.ts'

/** Who removes the node of an ending pod: the agent (`we`), at once; its owner; or why it stays. */
export type Turn = 'we' | 'owner' | Leave
type Leave = 'standalone' | 'discovery' | 'address-unknown' | 'fixed-address' | 'dry-run'

/**
 * The table that decides every write, for a node that the holder lists (docs/decisions/0040).
 *
 * | barrier                                      | map, no controller | list, no controller      | controller           |
 * | -------------------------------------------- | ------------------ | ------------------------ | -------------------- |
 * | a gateway never had one, or the holder is L4 | we                 | we                       | map: we, list: owner |
 * | every gateway                                | we                 | we, once the pod is gone | owner                |
 */
export function turnOf(holder: Holder, drain: Drain, settings: PlanSettings): Turn {
  const owned = holder.owner !== 'unknown'
  // A standalone document belongs to its owner as a whole: with a second writer, every sync of the owner would fail.
  if (settings.standalone) return 'standalone'
  if (holder.discovery) return 'discovery'
  // Another pod may have the address. A ghost does less harm than the removal of a pod that serves.
  if (settings.unsure?.has(drain.uid)) return 'address-unknown'
  // The next pod has the same address, and nobody would add its node again.
  if (!owned && hasFixedAddress(drain.pod)) return 'fixed-address'
  const isWhole = isWrittenWhole(holder)
  // The barrier may not cover L4.
  const ours =
    settings.unbarred || holder.l4 ? !(owned && isWhole) : !owned && (!isWhole || drain.phase === 'gone')
  if (!ours) return 'owner'
  return settings.dryRun ? 'dry-run' : 'we'
}

/**
 * A list of nodes, a consumer and the rules of a plugin are always written as a whole: PATCH merges objects and replaces lists
 * (apisix/admin/resource.lua). Such a write overwrites a simultaneous change of another writer.
 */
const isWrittenWhole = ({ form, resource, path: [first] }: Holder): boolean =>
  form === 'array' || resource === 'consumers' || first === 'plugins'

/**
 * Whether a node that can take over is left once `leaving` have left the holder. If not, no node is removed: a Terminating pod may still
 * serve, and the entry of a dead one may lead to successors.
 */
export function isServed(
  { nodes }: Holder,
  leaving: ReadonlySet<NodeKey>,
  takesOver: (node: HolderNode) => boolean
): boolean {
  const left = nodes.filter(({ key }) => !leaving.has(key))
  // Nodes of weight 0 are standbys. They get requests only if no node with a weight is left.
  const isStandby = left.every(({ weight }) => weight === 0)
  return left.some(node => (isStandby || node.weight > 0) && takesOver(node))
}
