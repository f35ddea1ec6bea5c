import type { Drain, Drains } from '../drain/drain.ts'
import { isOver, mayStay } from '../drain/eligible.ts'
import type { Change, Kept, Plan } from './change.ts'
import { endingNodes, isEnding, serves, type Match } from './match.ts'
import { isServed, turnOf, type Turn } from './turn.ts'
import type { PlanSettings, World } from './world.ts'

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
