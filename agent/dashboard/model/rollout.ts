import { longLivedWords } from '../../rules/drain/long-lived.ts'
import { isOpen, type Lane } from './lanes.ts'
import { formatMs } from './format.ts'
import { waitOf } from './waits.ts'

/** The pods of one workload that ended together. */
export interface Rollout {
  /** Stays the same while pods are added. */
  readonly id: string
  readonly name: string
  readonly lanes: readonly Lane[]
  readonly proved: number
  readonly waiting: number
  readonly unproved: number
  /** From the first decision until the last pod was gone, in ms; `null` while a pod still exists. */
  readonly tookMs: number | null
  readonly worstLagMs: number | null
  /** The first deadline of a pod that waits; `null`: none waits. */
  readonly deadline: number | null
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

/** The rollouts: those with a pod that waits first, the shortest time left on top; then the newest. Pods are in the order of their deletion. */
export function rolloutsOf(lanes: readonly Lane[]): readonly Rollout[] {
  const byWorkload = Map.groupBy(lanes, ({ drain }) => workloadOf(drain.owner, drain.namespace))
  return [...byWorkload]
    .flatMap(([name, all]) => inTurns(all).map(turn => rolloutOf(name, turn)))
    .sort((a, b) => (a.deadline ?? Infinity) - (b.deadline ?? Infinity) || startOf(b) - startOf(a))
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
  const deadlines = lanes.flatMap(({ drain, live }) => (live && isOpen(drain) ? drain.deadline : []))
  return {
    id: `${name} ${lanes[0]?.drain.uid}`,
    name,
    lanes,
    proved: standing('proved'),
    waiting: standing('waiting'),
    unproved: standing('unproved'),
    tookMs: gone.includes(null) ? null : Math.max(...(gone as number[])) - (lanes[0]?.start ?? 0),
    worstLagMs: lags.length > 0 ? Math.max(...lags) : null,
    deadline: deadlines.length > 0 ? Math.min(...deadlines) : null
  }
}

/** A pod that waits for longer than this is stuck, in ms: most pods need less. */
const STUCK_MS = 1000
/** How many stuck pods a rollout that is not open shows. */
const MOST_STUCK = 3

/** A row of the drains: a rollout, a pod, or below a stuck pod why it is stuck. */
export type Row =
  | { readonly kind: 'rollout'; readonly rollout: Rollout; readonly isOpen: boolean }
  | { readonly kind: 'lane'; readonly lane: Lane }
  | { readonly kind: 'reason'; readonly lane: Lane; readonly text: string }

interface RowsOptions {
  /** The agent's clock, in ms. */
  readonly at: number
  readonly order: 'workloads' | 'pods'
  /** The id of the rollout that is open. */
  readonly opened: string
  /** Every rollout is open. */
  readonly isWhole: boolean
  /** Its rollout is open too. */
  readonly selected: Lane | undefined
}

/** The rows: one for each rollout, and those of its pods if it is open, else only those of stuck pods. */
export function rowsOf(lanes: readonly Lane[], options: RowsOptions): readonly Row[] {
  const { at, order, opened, isWhole, selected } = options
  const isStuck = ({ live, drain, standing, start }: Lane) =>
    live && (standing === 'unproved' || (isOpen(drain) && at - start > STUCK_MS))
  const rowsFor = (lane: Lane): readonly Row[] =>
    [isStuck(lane) ? reasonOf(lane) : lane.live ? leftTo(lane) : ''].flatMap((text): readonly Row[] => [
      { kind: 'lane', lane },
      ...(text === '' ? [] : [{ kind: 'reason' as const, lane, text }])
    ])
  if (order === 'pods') return lanes.flatMap(rowsFor)
  return rolloutsOf(lanes).flatMap((rollout): readonly Row[] => {
    const stuck = rollout.lanes.filter(isStuck).sort((a, b) => a.drain.deadline - b.drain.deadline)
    const isWanted = isWhole || rollout.id === opened || rollout.lanes.some(({ id }) => id === selected?.id)
    const others = isWanted ? rollout.lanes.filter(lane => !isStuck(lane)) : []
    return [
      { kind: 'rollout', rollout, isOpen: isWanted },
      ...[...(isWanted ? stuck : stuck.slice(0, MOST_STUCK)), ...others].flatMap(rowsFor)
    ]
  })
}

/** The long-lived connections that the pod has to end itself. */
const leftTo = ({ drain: { longLived } }: Lane): string =>
  longLived ? `left to the pod: ${longLivedWords(longLived)}` : ''

/** Why a pod is stuck, in full, and what would help. */
function reasonOf(lane: Lane): string {
  const { drain } = lane
  const why = waitOf(lane) || drain.why
  return [`${why}.`, helpFor(lane), leftTo(lane)].join(' ').trimEnd()
}

function helpFor({ drain: { verdict, gateways, deadline, moments } }: Lane): string {
  if (verdict?.lastEndpoint) return 'It ends as soon as a pod that replaces it is Ready.'
  const late = gateways.filter(({ grade }) => !grade)
  const grace = formatMs(deadline - moments.seenAt)
  if (late.length > 0 && late.every(({ sealedAt }) => sealedAt !== undefined))
    return `No new request comes. It ends with its last one, or after ${grace} in all.`
  return `Its hook is answered as soon as that is over, or after ${grace} in all: the pod then sleeps as without the agent.`
}
