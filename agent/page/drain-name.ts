import type { DrainView } from './snapshot.ts'

/** Names a finished drain. A pod can be taken back more than once, and then end: it ends once. */
export const drainName = ({ uid, phase, moments }: Pick<DrainView, 'uid' | 'phase' | 'moments'>): string =>
  phase === 'undone' ? `${uid} ${moments.seenAt}` : uid
