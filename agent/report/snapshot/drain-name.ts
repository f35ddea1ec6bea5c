import type { DrainView } from './drain-view.ts'

/** The identity of a finished drain: a pod can be undone more than once, but it ends only once. */
export const drainName = ({ uid, phase, moments }: Pick<DrainView, 'uid' | 'phase' | 'moments'>): string =>
  phase === 'undone' ? `${uid} ${moments.seenAt}` : uid
