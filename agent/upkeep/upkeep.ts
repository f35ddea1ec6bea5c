import type { Millis } from '../rules/drain/facts.ts'
import type { Writer } from '../gateway/write/writer.ts'
import type { Observer } from '../round/observer.ts'
import type { Ghosts } from './ghosts.ts'
import type { Sync } from './sync.ts'

/** The parts that look at holders apart from drains. */
export interface UpkeepParts {
  readonly ghosts: Ghosts
  /** Absent if it is off. */
  readonly sync: Sync | undefined
}

/** After each round, looks for ghosts, and makes the writer check every claimed object that differs from its members. */
export const upkeepObserver = (
  { ghosts, sync }: UpkeepParts,
  writer: Pick<Writer, 'tend'>,
  now: () => Millis
): Observer => ({
  round() {
    ghosts.look(now())
    for (const target of sync?.targets(now()) ?? []) writer.tend(target)
  }
})
