import { longLivedWords } from '../../rules/drain/drain.ts'
import { latestDecision, lagOf, type DrainView } from '../../report/snapshot/drain-view.ts'
import { formatMs } from './format.ts'

/**
 * The state of a drain as one word, which has a colour, a shape and a label. `kept`: the pod is the last endpoint, and is held as
 * planned. `unlisted`: the drain ended without a proof, and no object of APISIX led to the pod.
 */
export type Standing = 'waiting' | 'kept' | 'proved' | 'unproved' | 'unlisted' | 'undone'

/** One drain, prepared for display. */
export interface Lane {
  /** The uid and `seenAt`. The uid alone is not enough: a pod can be drained twice (a container restart, then the end). */
  readonly id: string
  readonly drain: DrainView
  readonly live: boolean
  readonly standing: Standing
  /** Time 0 of the lane: the decision of Kubernetes, in ms on the agent's clock. */
  readonly start: number
  readonly lagMs: number | null
}

/** The lanes: first live drains (waiting drains by remaining time, then others), then `past`. */
export function lanesOf(live: readonly DrainView[], past: readonly DrainView[]): readonly Lane[] {
  const stuckFirst = live.toSorted(
    (a, b) => rankOf(a) - rankOf(b) || a.deadline - b.deadline || b.moments.seenAt - a.moments.seenAt
  )
  return [...stuckFirst.map(drain => laneOf(drain, true)), ...past.map(drain => laneOf(drain, false))]
}

/** The rank in the list. Undone, proved and unlisted drains come last, because they need no action. */
const rankOf = (drain: DrainView): number => {
  const standing = standingOf(drain)
  return standing === 'unproved' || standing === 'waiting' ? 0 : standing === 'kept' ? 1 : 2
}

function laneOf(drain: DrainView, live: boolean): Lane {
  return {
    id: `${drain.uid} ${drain.moments.seenAt}`,
    drain,
    live,
    standing: standingOf(drain),
    start: latestDecision(drain.moments),
    lagMs: lagOf(drain.moments)
  }
}

export function standingOf({ phase, verdict, unlisted }: DrainView): Standing {
  if (phase === 'undone') return 'undone'
  if (verdict?.kind === 'proven') return 'proved'
  if (verdict?.lastEndpoint) return 'kept'
  if (phase === 'draining') return 'waiting'
  return unlisted ? 'unlisted' : 'unproved'
}

/** Whether the drain still waits for a proof, or for its deadline. */
export const isOpen = ({ phase, verdict }: DrainView): boolean =>
  phase === 'draining' && verdict?.kind !== 'proven'

/** The end of a lane, in ms after its start: its ack, else its proof. Without both: now while it waits, else the pod's end or deadline. */
export function settledAt({ drain, start }: Lane, now: number): number {
  const { ackAt, confirmedAt, goneAt } = drain.moments
  const settled = ackAt ?? confirmedAt ?? (isOpen(drain) ? now : (goneAt ?? drain.deadline))
  return Math.max(0, settled - start)
}

const NICE = [1, 2, 5]

/** The smallest round number at or above `ms`: 1, 2, 5, 10, 20, 50, … */
export function roundUp(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(ms, 1)))
  return (NICE.find(nice => nice * power >= ms) ?? 10) * power
}

/** The lane of a link, found by id, else by uid: agents may have seen the same drain at different times, so their ids differ. */
export const laneAt = (lanes: readonly Lane[], id: string): Lane | undefined =>
  id === ''
    ? undefined
    : (lanes.find(lane => lane.id === id) ?? lanes.find(({ drain }) => drain.uid === id.split(' ', 1)[0]))

/**
 * The length of the scale for all lanes, in ms: nine of ten lanes fit until their ack. Longer lanes are cut at their right end, because a
 * scale for one lane of half a minute would shrink all others to a dot.
 */
export function scaleOf(lanes: readonly Lane[], now: number): number {
  const sorted = lanes.map(lane => settledAt(lane, now)).toSorted((a, b) => a - b)
  return roundUp(Math.max(20, (sorted[Math.ceil(sorted.length * 0.9) - 1] ?? 0) * 1.05))
}

/** The reason why a drain waits, as the proof states it; empty if it does not wait. */
export function waitOf({ drain, standing }: Lane): string {
  if (standing !== 'waiting' && standing !== 'kept') return ''
  const behind = drain.gateways.find(({ grade }) => !grade)
  return behind ? `${behind.name}: ${behind.why || drain.why}` : drain.why
}

/** A reason, and how many drains wait for it. */
export interface Wait {
  readonly why: string
  readonly count: number
}

/** So many drains are shown with their reason anyway. */
const MOST_TOLD = 3

/** The reasons that many drains share, the most frequent first. Reasons that differ only in numbers (`3 in flight`) count as one. */
export function waitsOf(lanes: readonly Lane[]): readonly Wait[] {
  const reasons = lanes.filter(({ live }) => live).map(waitOf)
  const groups = Map.groupBy(
    reasons.filter(why => why !== ''),
    why => why.replaceAll(/\b\d+(\.\d+)?\b/g, 'n')
  )
  return [...groups.values()]
    .filter(group => group.length > MOST_TOLD)
    .map(group => ({ why: group[0] ?? '', count: group.length }))
    .toSorted((a, b) => b.count - a.count)
    .slice(0, 5)
}

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

/** A pod that waits for longer than this counts as stuck, in ms. */
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
  /** The id of the rollout that is open. */
  readonly opened: string
  /** Every rollout is open. */
  readonly isWhole: boolean
  /** Its rollout is open too. */
  readonly selected: Lane | undefined
}

/** The rows: one for each rollout, and those of its pods if it is open (stuck ones, live ones, others), else only those of stuck pods. */
export function rowsOf(lanes: readonly Lane[], options: RowsOptions): readonly Row[] {
  const { at, opened, isWhole, selected } = options
  const isStuck = ({ live, drain, standing, start }: Lane) =>
    live && (standing === 'unproved' || (isOpen(drain) && at - start > STUCK_MS))
  const rowsFor = (lane: Lane): readonly Row[] =>
    [isStuck(lane) ? reasonOf(lane) : lane.live ? leftTo(lane) : ''].flatMap((text): readonly Row[] => [
      { kind: 'lane', lane },
      ...(text === '' ? [] : [{ kind: 'reason' as const, lane, text }])
    ])
  return rolloutsOf(lanes).flatMap((rollout): readonly Row[] => {
    const stuck = rollout.lanes.filter(isStuck).sort((a, b) => a.drain.deadline - b.drain.deadline)
    const isWanted = isWhole || rollout.id === opened || rollout.lanes.some(({ id }) => id === selected?.id)
    const calm = isWanted ? rollout.lanes.filter(lane => !isStuck(lane)) : []
    const others = calm.toSorted((a, b) => Number(b.live) - Number(a.live))
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
