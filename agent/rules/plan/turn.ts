import type { Drain, Drains } from '../drain/drain.ts'
import type { NodeKey, PodUid } from '../drain/facts.ts'
import { hasFixedAddress } from '../drain/workload.ts'
import type { Holder, HolderNode } from './holder.ts'
import { serves } from './match.ts'
import type { PlanSettings, World } from './world.ts'

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

interface Going {
  readonly key: NodeKey
  readonly uid: PodUid
}

interface Leaving {
  /** The nodes that leave the holder, whoever removes them. */
  readonly leaving: readonly Going[]
  /** The nodes of ending pods that stay listed all the same. They get requests, but are no replacement. */
  readonly staying: readonly Going[]
}

/**
 * The node that stays because no other node of the holder could serve; `undefined` if another one can. A Terminating pod that still
 * serves is better than a 503, so it stays until a round finds a replacement.
 */
export function lastNode(
  holder: Holder,
  { leaving, staying }: Leaving,
  { world, drains }: { readonly world: World; readonly drains: Drains }
): Going | undefined {
  if (leaving.length === 0) return undefined
  const goes = new Set(leaving.map(({ key }) => key))
  const ending = new Set([...leaving, ...staying].map(({ key }) => key))
  // Nodes of weight 0 are standbys. They get requests only if no node with a weight is left.
  const isStandby = holder.nodes.every(({ key, weight }) => goes.has(key) || weight === 0)
  const takesOver = (node: HolderNode) => !ending.has(node.key) && (isStandby || node.weight > 0)
  if (holder.nodes.some(node => takesOver(node) && serves(world, drains, node))) return undefined
  const last = lastOf(holder, leaving, drains)
  // A pod that is gone serves no request, and a node of weight 0 gets no request. Such a node stays only if no other node would be
  // picked.
  const draws = holder.nodes.some(node => node.key === last.key && carries(holder, node))
  const helps = draws && drains.get(last.uid)?.phase !== 'gone'
  return !helps && holder.nodes.some(takesOver) ? undefined : last
}

/**
 * Whether APISIX sends requests to the node at all. Weight 0 gets none while another node has a weight. If every node has weight 0
 * (also a single one), all of them are used: measured on 3.18.
 */
const carries = (holder: Holder, node: HolderNode): boolean =>
  node.weight > 0 || holder.nodes.every(other => other.weight === 0)

/**
 * The node to keep: it gets requests, and its pod exists, is Ready, and lives longest by the API server's time. Of equal nodes, the first
 * by key. All agents choose the same node, because no agent's own measurement counts.
 */
function lastOf(holder: Holder, nodes: readonly Going[], drains: Drains): Going {
  const carrying = new Set(holder.nodes.filter(node => carries(holder, node)).map(node => node.key))
  const rank = (node: Going) => [carrying.has(node.key) ? 1 : 0, ...rankOf(drains.get(node.uid))]
  return nodes.reduce((best, node) => (isHigher(rank(node), rank(best)) ? node : best))
}

const rankOf = (drain: Drain | undefined): number[] =>
  [drain?.phase !== 'gone', drain?.pod.ready, drain?.pod.deletionAt ?? Infinity].map(Number)

/** Compares position by position; equal lists are not higher. */
function isHigher(a: readonly number[], b: readonly number[]): boolean {
  const first = a.findIndex((value, i) => value !== b[i])
  return first >= 0 && Number(a[first]) > Number(b[first])
}
