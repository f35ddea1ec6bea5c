import type { Drain } from '../drain/drain.ts'
import type { NodeKey } from '../drain/facts.ts'
import { hasFixedAddress } from '../drain/eligible.ts'
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
 * Whether a node that can take over, of the highest standing in the holder, is left once `leaving` have left it. If not, no node is removed:
 * a Terminating pod may still serve, and the entry of a dead one may lead to successors.
 */
export function isServed(
  { nodes }: Holder,
  leaving: ReadonlySet<NodeKey>,
  takesOver: (node: HolderNode) => boolean
): boolean {
  const top = nodes.reduce((highest, node) => Math.max(highest, standingOf(node)), -Infinity)
  return nodes.some(node => !leaving.has(node.key) && standingOf(node) === top && takesOver(node))
}

/** APISIX picks a node of weight 0, or of a lower priority, only if no other is left: it is a standby. */
const standingOf = ({ weight, raw }: HolderNode): number =>
  weight === 0 ? -Infinity : typeof raw === 'string' ? 0 : Number(raw.priority ?? 0)
