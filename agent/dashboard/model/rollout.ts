import type { Lane } from './lanes.ts'

/** The pods of one workload that ended together. */
export interface Rollout {
  readonly name: string
  readonly lanes: readonly Lane[]
  readonly proved: number
  readonly waiting: number
  readonly unproved: number
  /** From the first decision until the last pod was gone, in ms; `null` while a pod still exists. */
  readonly tookMs: number | null
  readonly worstLagMs: number | null
}

/** A pod that ends later than this after the previous pod belongs to the next rollout of the workload, in ms. */
const NEXT_ROLLOUT_MS = 120_000

/** The workload of a pod's owner. A ReplicaSet is shown as its Deployment: `ReplicaSet/web-5d7f9c` belongs to Deployment `web`. */
export function workloadOf(owner: string | null, namespace: string): string {
  if (owner === null) return `${namespace} / pods without an owner`
  const [kind = '', name = ''] = owner.split('/', 2)
  const cut = kind === 'ReplicaSet' ? name.lastIndexOf('-') : -1
  return cut > 0 ? `${namespace} / Deployment ${name.slice(0, cut)}` : `${namespace} / ${kind} ${name}`
}

/** The rollouts, newest first, each with its pods in the order of their deletion. */
export function rolloutsOf(lanes: readonly Lane[]): readonly Rollout[] {
  const byWorkload = Map.groupBy(lanes, ({ drain }) => workloadOf(drain.owner, drain.namespace))
  return [...byWorkload]
    .flatMap(([name, all]) => inTurns(all).map(turn => rolloutOf(name, turn)))
    .sort((a, b) => startOf(b) - startOf(a))
}

const startOf = ({ lanes: [first] }: Rollout) => first?.start ?? 0

function inTurns(lanes: readonly Lane[]): Lane[][] {
  const turns: Lane[][] = []
  let last = -Infinity
  for (const lane of lanes.toSorted((a, b) => a.start - b.start)) {
    const turn = turns.at(-1)
    if (turn && lane.start - last < NEXT_ROLLOUT_MS) turn.push(lane)
    else turns.push([lane])
    last = lane.start
  }
  return turns
}

function rolloutOf(name: string, lanes: readonly Lane[]): Rollout {
  const standing = (wanted: Lane['standing']) => lanes.filter(lane => lane.standing === wanted).length
  const gone = lanes.map(lane => lane.drain.moments.goneAt)
  const lags = lanes.flatMap(lane => lane.lagMs ?? [])
  return {
    name,
    lanes,
    proved: standing('proved'),
    waiting: standing('waiting'),
    unproved: standing('unproved'),
    tookMs: gone.includes(null) ? null : Math.max(...(gone as number[])) - (lanes[0]?.start ?? 0),
    worstLagMs: lags.length > 0 ? Math.max(...lags) : null
  }
}
