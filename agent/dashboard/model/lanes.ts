import type { DrainView } from '../../report/snapshot/drain-view.ts'
import { latestDecision, lagOf } from '../../report/snapshot/lag.ts'

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

const made = new WeakMap<DrainView, { readonly live: Lane; readonly past: Lane }>()

/** The lanes: first live drains (waiting drains by remaining time, then others), then `past`. An unchanged drain keeps its lane object. */
export function lanesOf(live: readonly DrainView[], past: readonly DrainView[]): readonly Lane[] {
  const stuckFirst = live.toSorted(
    (a, b) => rankOf(a) - rankOf(b) || a.deadline - b.deadline || b.moments.seenAt - a.moments.seenAt
  )
  return [...stuckFirst.map(drain => both(drain).live), ...past.map(drain => both(drain).past)]
}

/** The rank in the list. Undone, proved and unlisted drains come last, because they need no action. */
const rankOf = (drain: DrainView): number => {
  const standing = standingOf(drain)
  return standing === 'unproved' || standing === 'waiting' ? 0 : standing === 'kept' ? 1 : 2
}

function both(drain: DrainView) {
  const known = made.get(drain)
  if (known) return known
  const past = laneOf(drain)
  const lanes = { live: { ...past, live: true }, past }
  made.set(drain, lanes)
  return lanes
}

function laneOf(drain: DrainView): Lane {
  return {
    id: `${drain.uid} ${drain.moments.seenAt}`,
    drain,
    live: false,
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
 * The length of the scale for all lanes, in ms: nine of ten lanes fit. Longer lanes are cut at their right end, because a scale for one
 * lane of half a minute would shrink all others to a dot.
 */
export function scaleOf(lanes: readonly Lane[], span: 'ack' | 'gone', now: number): number {
  const lengths = lanes.map(lane => {
    const end = span === 'gone' ? lane.drain.moments.goneAt : null
    return end === null ? settledAt(lane, now) : end - lane.start
  })
  const sorted = lengths.toSorted((a, b) => a - b)
  return roundUp(Math.max(20, (sorted[Math.ceil(sorted.length * 0.9) - 1] ?? 0) * 1.05))
}
