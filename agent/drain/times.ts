import type { Millis } from './facts.ts'

/** Exponential back-off, without jitter: how long to wait, in ms, where it was doubled so many times. Bounded by `longest`. */
export const doubled = (
  { first, longest }: { readonly first: Millis; readonly longest: Millis },
  times: number
): Millis => Math.min(longest, first * 2 ** times)

/** The latest of all; `undefined` where one is missing, or there is none. */
export function latest(all: readonly (Millis | undefined)[]): Millis | undefined {
  const known = all.filter(at => at !== undefined)
  return known.length > 0 && known.length === all.length ? Math.max(...known) : undefined
}
