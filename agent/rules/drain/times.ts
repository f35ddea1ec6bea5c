import type { Millis } from './facts.ts'

/** Exponential back-off, without jitter: the wait in ms after this many doublings, at most `longest`. */
export const doubled = (
  { first, longest }: { readonly first: Millis; readonly longest: Millis },
  times: number
): Millis => Math.min(longest, first * 2 ** times)

/** The latest of all; `undefined` if one is missing, or if the list is empty. */
export function latest(all: readonly (Millis | undefined)[]): Millis | undefined {
  const known = all.filter(at => at !== undefined)
  return known.length > 0 && known.length === all.length ? known.reduce((a, b) => Math.max(a, b)) : undefined
}

/** The earliest defined time. */
export function earliest(some: readonly (Millis | undefined)[]): Millis | undefined {
  const known = some.filter(at => at !== undefined)
  return known.length > 0 ? known.reduce((a, b) => Math.min(a, b)) : undefined
}
