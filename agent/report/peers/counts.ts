import type { Totals } from '../snapshot/snapshot.ts'
import type { DrainView } from '../snapshot/drain-view.ts'

/** How many drains there were, and how they ended. Every agent sees every drain, so the counts of two agents must not be added. */
export type DrainCounts = Pick<Totals, 'drains' | 'proven' | 'graded' | 'expired' | 'undone'>

/** The count that belongs to one agent alone: the hooks that it answered. */
export interface StartCounts {
  /** Unique to one start of one agent. */
  readonly id: string
  readonly startedAt: number
  readonly hooks: number
  readonly savedMs: number
}

export const NO_DRAINS: DrainCounts = {
  drains: 0,
  proven: 0,
  graded: { barrier: 0, observed: 0, accepted: 0, timer: 0 },
  expired: 0,
  undone: 0
}

function combine(a: DrainCounts, b: DrainCounts, of: (a: number, b: number) => number): DrainCounts {
  const grades = (['barrier', 'observed', 'accepted', 'timer'] as const).map(
    grade => [grade, of(a.graded[grade], b.graded[grade])] as const
  )
  return {
    drains: of(a.drains, b.drains),
    proven: of(a.proven, b.proven),
    graded: Object.fromEntries(grades) as unknown as DrainCounts['graded'],
    expired: of(a.expired, b.expired),
    undone: of(a.undone, b.undone)
  }
}

export const addCounts = (a: DrainCounts, b: DrainCounts): DrainCounts => combine(a, b, (x, y) => x + y)
const minus = (a: DrainCounts, b: DrainCounts): DrainCounts => combine(a, b, (x, y) => Math.max(0, x - y))

/** This drain's share of the counts. */
function countsOf({ phase, verdict, moments, deadline, unlisted }: DrainView): DrainCounts {
  const proven = verdict?.kind === 'proven'
  const { grade, result } = verdict ?? {}
  const expired =
    !unlisted && (phase === 'expired' || (phase === 'gone' && !proven && (moments.goneAt ?? 0) > deadline))
  return {
    drains: 1,
    proven: Number(proven),
    graded: {
      ...NO_DRAINS.graded,
      ...(proven && grade && result !== 'not-routed' && { [grade]: 1 })
    },
    expired: Number(expired),
    undone: Number(phase === 'undone')
  }
}

/**
 * The drains that another agent counted before this one began: its counts, less the drains that this agent has counted, or still will.
 *
 * @param own the drains that this agent knows, by uid
 * @param theirs the other agent's view of the same drains, and of others
 */
export const countedBefore = (
  counts: DrainCounts,
  own: ReadonlySet<string>,
  theirs: readonly DrainView[]
): DrainCounts =>
  minus(
    counts,
    theirs
      .filter(({ uid }) => own.has(uid))
      .reduce((sum, drain) => addCounts(sum, countsOf(drain)), NO_DRAINS)
  )

/** The largest counts, which are those of the agent that has counted for longest; among equal ones, those with the best evidence. */
export const mostCounted = (all: readonly DrainCounts[]): DrainCounts =>
  all.reduce((most, one) => (orderOf(one) > orderOf(most) ? one : most), NO_DRAINS)

const DIGITS = 16
const orderOf = ({ drains, graded, expired, undone }: DrainCounts): string =>
  [drains, graded.barrier, graded.observed, graded.accepted, graded.timer, expired, undone]
    .map(number => String(number).padStart(DIGITS, '0'))
    .join()
