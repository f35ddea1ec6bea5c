import type { Drain, Drains } from '../drain/drain.ts'
import { isOver } from '../drain/eligible.ts'
import type { Change, Kept, Plan } from './change.ts'
import { endingNodes, isEnding, type Match } from './match.ts'
import { lastNode, turnOf, type Turn } from './turn.ts'
import type { PlanSettings, World } from './world.ts'

/**
 * The removals that are due now: every node of every ending pod, if it is the agent's turn (`turnOf`), and a node that serves is left. It
 * reads only the holders that list an ending pod. The order of holders, nodes and drains does not change the result.
 */
export function plan(world: World, drains: Drains, settings: PlanSettings): Plan {
  const matches = [...drains.values()]
    .filter(drain => isEnding(drain))
    .flatMap(drain => endingNodes(world, drains, drain))
  const byHolder = Map.groupBy(matches, match => match.holder.key)
  const changes: Change[] = []
  const kept: Kept[] = []
  for (const { holder, nodes } of [...byHolder.values()]
    .map(changeOf)
    .sort(by(change => change.holder.key))) {
    const turns = nodes.map(node => turnOf(holder, drains.get(node.uid) as Drain, settings))
    const staying = nodes.filter((_, i) => STAYS.has(turns[i] as Turn))
    const leaving = nodes.filter(node => !staying.includes(node))
    const last = lastNode(holder, { leaving, staying }, { world, drains })
    const ours = nodes.filter((node, i) => turns[i] === 'we' && node !== last)
    if (ours.length > 0) changes.push({ holder, nodes: ours })
    for (const [i, node] of nodes.entries()) {
      const why = node === last ? 'last-node' : (turns[i] as Turn)
      if (why !== 'we') kept.push({ holder: holder.key, node: node.key, uid: node.uid, why })
    }
  }
  return { changes, kept }
}

/** All other nodes leave their holder sooner or later. Even in a dry run a last node is reported as such. */
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
