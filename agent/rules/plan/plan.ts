import type { Drain, Drains } from '../drain/drain.ts'
import { isOver } from '../drain/eligible.ts'
import type { Millis } from '../drain/facts.ts'
import type { Change, Plan } from './change.ts'
import { endingNodes, isEnding, type Match } from './match.ts'
import { POLICIES } from './policies.ts'
import type { PlanSettings, World } from './world.ts'

/**
 * The removals that are due now: every node of every ending pod, except those that the policies keep. It reads only the holders that
 * list an ending pod. The order of holders, nodes and drains does not change the result.
 */
export function plan(world: World, drains: Drains, now: Millis, settings: PlanSettings): Plan {
  const matches = [...drains.values()]
    .filter(drain => isEnding(drain))
    .flatMap(drain => endingNodes(world, drains, drain))
  const byHolder = Map.groupBy(matches, match => match.holder.key)
  const changes = [...byHolder.values()].map(changeOf).sort(by(change => change.holder.key))
  const context = { world, drains, now, settings }
  const kept = POLICIES.reduce<Plan>((plan, policy) => policy(plan, context), { changes, kept: [] })
  return { ...kept, changes: kept.changes.map(change => inTurn(change, drains, settings)) }
}

/** How long an ingress controller goes first even without a barrier, in ms. Real ones write 70 to 340 ms after the deletion (measured). */
const OWNERS_MS = 1000

/** A change is left to the ingress controller of its holder for a moment, because one of two concurrent writes could be lost. */
function inTurn(change: Change, drains: Drains, { deferMs }: PlanSettings): Change {
  if (change.holder.owner === 'unknown' || deferMs === 0) return change
  const began = change.nodes.map(({ uid }) => (drains.get(uid) as Drain).since)
  return { ...change, notBefore: Math.min(...began) + Math.min(deferMs, OWNERS_MS) }
}

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
