import type { Drain, Drains } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import { hasFixedAddress } from '../drain/workload.ts'
import type { Change, Kept, Plan } from './change.ts'
import type { Holder, HolderNode } from './holder.ts'
import { serves } from './match.ts'
import type { PlanSettings, World } from './world.ts'

interface Context {
  readonly world: World
  readonly drains: Drains
  readonly now: Millis
  readonly settings: PlanSettings
}

/** A rule that holds removals back, with the reason. It only moves nodes from `changes` to `kept`. */
type Policy = (plan: Plan, context: Context) => Plan

type Going = Change['nodes'][number]

/** A standalone document belongs to its owner as a whole: with a second writer, every sync of the owner would fail. */
const standalone: Policy = (plan, { settings }) =>
  settings.standalone ? keep(plan, 'standalone', change => change.nodes) : plan

/** If APISIX discovers the nodes, the agent can edit nothing. */
const ownership: Policy = plan =>
  keep(plan, 'discovery', change => (change.holder.discovery ? change.nodes : []))

/**
 * An ingress controller gets `deferMs` to remove the node itself, because two simultaneous writes cost both writers a retry. This applies
 * only while the barrier keeps requests away. Without the barrier, requests continue until the node is removed.
 */
const deferToOwner: Policy = (plan, { drains, now, settings }) =>
  keepAllOrNone(plan, 'deferred', ({ owner }, { uid }) => {
    const drain = drains.get(uid)
    if (owner === 'unknown' || !drain || settings.unbarred?.has(uid)) return false
    return now < drain.since + settings.deferMs
  })

/**
 * The next pod of a DaemonSet on the same host has the same address, and so has the next mirror pod. So the node stays: nobody would
 * list it again.
 */
const fixedAddress: Policy = (plan, { drains }) =>
  keep(plan, 'fixed-address', ({ holder, nodes }) =>
    holder.owner === 'unknown'
      ? nodes.filter(({ uid }) => hasFixedAddress((drains.get(uid) as Drain).pod))
      : []
  )

/**
 * Never leaves a holder without a node that can serve. If no other node can serve, one ending node stays until a round finds a replacement.
 * A Terminating pod that still serves is better than a 503.
 */
const keepLastNode: Policy = (plan, context) => {
  const keptBefore = Map.groupBy(plan.kept, kept => kept.holder)
  return keep(plan, 'last-node', ({ holder, nodes }) => {
    // A node that an earlier policy kept also leads to a pod that ends, so it is no replacement.
    const ending = new Set(
      [...nodes, ...(keptBefore.get(holder.key) ?? [])].map(n => ('key' in n ? n.key : n.node))
    )
    // Nodes of weight 0 are standbys. They get requests only if no node with a weight is left.
    const rest = holder.nodes.filter(node => !ending.has(node.key))
    const isStandby = rest.every(({ weight }) => weight === 0)
    const takesOver = (node: HolderNode) => !ending.has(node.key) && (isStandby || node.weight > 0)
    if (holder.nodes.some(node => takesOver(node) && serves(context.world, context.drains, node))) return []
    const last = lastOf(holder, nodes, context.drains)
    // A pod that is gone serves no request, and a node of weight 0 gets no request. Such a node stays only if no other node would be
    // picked.
    const draws = holder.nodes.some(node => node.key === last.key && carries(holder, node))
    const helps = draws && context.drains.get(last.uid)?.phase !== 'gone'
    return !helps && holder.nodes.some(takesOver) ? [] : [last]
  })
}

/** Keeps a node whose address another pod may have by now: a ghost does less harm than the removal of a pod that serves. */
const sureOfAddress: Policy = (plan, { settings }) =>
  keep(plan, 'address-unknown', change => change.nodes.filter(node => settings.unsure?.has(node.uid)))

/**
 * How long the write of a whole list waits for the seal of the entry, in ms from the start of the drain. A seal takes milliseconds, and an
 * owner's removal at most 1 s.
 */
const SEAL_MS = 1000

/** Until this time the agent leaves a holder that can only be written as a whole, unless the pod is gone before. */
export const sealedUntil = (drain: Drain): Millis =>
  isSealed(drain) ? drain.deadline : drain.since + SEAL_MS

/** Whether every gateway has sealed the drain's entry. */
const isSealed = (drain: Drain): boolean =>
  drain.phase !== 'undone' &&
  (drain.verdict.kind === 'proven' ? drain.verdict.grade === 'barrier' : drain.verdict.barred)

/**
 * A list of nodes, a consumer and the rules of a plugin are always written as a whole: PATCH merges objects and replaces lists
 * (apisix/admin/resource.lua). Such a write overwrites a simultaneous change of another writer. Once every gateway has sealed the entry,
 * the write can wait. If the owner does not remove the node, the agent removes it when the pod is gone, or at the deadline. If every node
 * of the holder ends, the entry cannot be sealed, and the write follows after a second.
 */
export const wholeWrite: Policy = (plan, { drains, now, settings }) =>
  keepAllOrNone(plan, 'whole-write', (holder, { uid }) => {
    const drain = drains.get(uid)
    if (!isWrittenWhole(holder) || !drain || drain.phase === 'gone') return false
    return settings.unbarred?.has(uid) === false && now < sealedUntil(drain)
  })

const isWrittenWhole = ({ form, resource, path: [first] }: Holder): boolean =>
  form === 'array' || resource === 'consumers' || first === 'plugins'

const dryRun: Policy = (plan, { settings }) =>
  settings.dryRun ? keep(plan, 'dry-run', change => change.nodes) : plan

/**
 * The order matters. The policies before `keepLastNode` keep nodes that must not be written, so that the last node is found among the nodes
 * that would really be removed. The policies after it decide whether and when to write. So even in a dry run, or while a holder is left to
 * its owner, a last node is reported as such.
 */
export const POLICIES: readonly Policy[] = [
  standalone,
  ownership,
  sureOfAddress,
  keepLastNode,
  deferToOwner,
  fixedAddress,
  wholeWrite,
  dryRun
]

/** Moves the chosen nodes of every change to `kept`; a change without nodes is dropped. */
function keep(plan: Plan, why: Kept['why'], choose: (change: Change) => readonly Going[]): Plan {
  const kept: Kept[] = [...plan.kept]
  const changes: Change[] = []
  for (const change of plan.changes) {
    const stay = new Set(choose(change))
    for (const { key, uid } of stay) kept.push({ holder: change.holder.key, node: key, uid, why })
    const nodes = change.nodes.filter(node => !stay.has(node))
    if (nodes.length > 0) changes.push({ ...change, nodes })
  }
  return { changes, kept }
}

/**
 * Keeps all nodes of a change if the rule holds for each of them, otherwise none. If one node must be removed now, the same write removes
 * the others. Besides, a kept node whose pod is gone would take requests from the standby that `keepLastNode` relies on. L4 holders are
 * never kept, because the barrier may not cover L4.
 */
const keepAllOrNone = (plan: Plan, why: Kept['why'], stays: (holder: Holder, node: Going) => boolean): Plan =>
  keep(plan, why, ({ holder, nodes }) =>
    !holder.l4 && nodes.every(node => stays(holder, node)) ? nodes : []
  )

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
