import type { Lane } from './lanes.ts'

/** The reason why a drain waits, in the words of the proof; empty if it does not wait. */
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
