import type { Drain, Drains } from '../drain/drain.ts'
import { isOver, mayStay, hasFixedAddress } from '../drain/eligible.ts'
import {
  type PlanSettings,
  type World,
  type Holder,
  type HolderNode,
  type HolderKey,
  endingNodes,
  isEnding,
  serves,
  type Match
} from './holder.ts'
import type { NodeKey, PodUid } from '../drain/facts.ts'

/**
 * The removals that are due now: every node of every pod that Kubernetes says to be ending, if it is the agent's turn (`turnOf`), and a node that serves is left. It
 * reads only the holders that list an ending pod. The order of holders, nodes and drains does not change the result.
 */
export function plan(world: World, drains: Drains, settings: PlanSettings): Plan {
  const matches = [...drains.values()]
    .filter(drain => isEnding(drain) && !mayStay(drain))
    .flatMap(drain => endingNodes(world, drains, drain))
  const byHolder = Map.groupBy(matches, match => match.holder.key)
  const changes: Change[] = []
  const kept: Kept[] = []
  for (const { holder, nodes } of [...byHolder.values()]
    .map(changeOf)
    .sort(by(change => change.holder.key))) {
    const turns = nodes.map(node => turnOf(holder, drains.get(node.uid) as Drain, settings))
    const ending = new Set(nodes.map(({ key }) => key))
    const leaving = new Set([...ending].filter((_, i) => !STAYS.has(turns[i] as Turn)))
    const served = isServed(holder, leaving, node => !ending.has(node.key) && serves(world, drains, node))
    const whys = turns.map(turn => (served || STAYS.has(turn) ? turn : 'last-node'))
    const ours = nodes.filter((_, i) => whys[i] === 'we')
    if (ours.length > 0) changes.push({ holder, nodes: ours })
    for (const [i, why] of whys.entries()) {
      const { key: node, uid } = nodes[i] as Change['nodes'][number]
      if (why !== 'we') kept.push({ holder: holder.key, node, uid, why })
    }
  }
  return { changes, kept }
}

/** All other nodes leave their holder sooner or later. Even in a dry run last nodes are reported as such. */
const STAYS: ReadonlySet<Turn> = new Set(['standalone', 'discovery', 'address-unknown', 'fixed-address'])

/**
 * The change of one holder, with each node once. If several ending pods have had a node's address, the node belongs to the pod that still
 * lives.
 */
function changeOf(matches: readonly Match[]): Change {
  const livingLast = [...matches].sort(
    (a, b) => living(a) - living(b) || a.drain.since - b.drain.since || byUid(a, b)
  )
  const byKey = new Map(livingLast.map(({ node, drain }) => [node.key, { key: node.key, uid: drain.uid }]))
  const [{ holder }] = matches as readonly [Match]
  return { holder, nodes: [...byKey.values()].sort(by(node => node.key)) }
}

/** How likely the pod still has its address: 0 if its object is gone or its phase is final, 1 otherwise, 2 if it is Ready. */
const living = ({ drain: { phase, pod } }: Match): number =>
  phase === 'gone' || isOver(pod) ? 0 : 1 + Number(pod.ready)

const byUid = by<Match>(match => match.drain.uid)

function by<T>(key: (item: T) => string): (a: T, b: T) => number {
  return (a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b)))
}

/** Who removes the node of an ending pod: the agent (`we`), at once; its owner; or why it stays. */
type Turn = 'we' | 'owner' | Leave
type Leave = 'standalone' | 'discovery' | 'address-unknown' | 'fixed-address' | 'dry-run'

/**
 * The table that decides every write, for a node that the holder lists (docs/decisions/0040).
 *
 * | barrier                                      | map, no controller | list, no controller      | controller           |
 * | -------------------------------------------- | ------------------ | ------------------------ | -------------------- |
 * | a gateway never had one, or the holder is L4 | we                 | we                       | map: we, list: owner |
 * | every gateway                                | we                 | we, once the pod is gone | owner                |
 */
function turnOf(holder: Holder, drain: Drain, settings: PlanSettings): Turn {
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
const isWrittenWhole = ({ form, resource, path }: Holder): boolean =>
  form === 'array' || resource === 'consumers' || path.some(step => typeof step === 'number')

/**
 * Whether a node that can take over, of the highest standing in the holder, is left once `leaving` have left it. If not, no node is removed:
 * a Terminating pod may still serve, and the entry of a dead one may lead to successors.
 */
function isServed(
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

/** One holder, and all nodes to remove from it in one write. A plan never holds two changes for one holder. */
export interface Change {
  readonly holder: Holder
  readonly nodes: readonly { readonly key: NodeKey; readonly uid: PodUid }[]
}

/** A node that stays listed although its pod ends, and the reason. */
export interface Kept {
  readonly holder: HolderKey
  readonly node: NodeKey
  readonly uid: PodUid
  readonly why: 'last-node' | Exclude<Turn, 'we'>
}

/** The removals that APISIX needs, as a value. */
export interface Plan {
  readonly changes: readonly Change[]
  readonly kept: readonly Kept[]
}

/** Whether two plans keep the same nodes, for the same reasons. */
export const keepsTheSame = (a: Plan, b: Plan): boolean => keptBy(a) === keptBy(b)

const keptBy = (p: Plan) => p.kept.map(k => `${k.holder} ${k.node} ${k.why}`).join('\n')
