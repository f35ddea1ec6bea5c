import type { Millis } from '../rules/drain/facts.ts'
import type { Taken, Target, Written } from '../gateway/write/removal.ts'
import type { Wish } from '../gateway/write/wish.ts'
import type { Writer } from '../gateway/write/writer.ts'
import type { Observer } from '../round/observer.ts'
import type { Holder } from '../rules/plan/holder.ts'
import type { Amends } from './amends.ts'
import type { Ghosts } from './ghosts.ts'
import type { Restore } from './restore.ts'
import type { Sync } from './sync/sync.ts'

/** The wishes for holders, apart from removals: from `sync`, undone drains, and unanswered writes. */
export interface Upkeep {
  /** The wished state of an object; called by the writer. */
  wishes(target: Target, found: readonly Holder[]): readonly Wish[]
  /** Asks Kubernetes for the facts that `wishes` needs, before the object is read. */
  prepare(target: Target): Promise<unknown>
  taken(taken: Taken): void
  wrote(written: Written): void
  /** See `Ghosts.found`. */
  ghosts: Ghosts['found']
  /** After each round, makes the writer check every object that differs from its wished state. */
  observer(writer: Pick<Writer, 'tend'>): Observer
}

/** The parts that keep holders as they should be, apart from removals. */
export interface UpkeepParts {
  readonly upkeep: Upkeep
  /** Absent if it is off. */
  readonly sync: Sync | undefined
}

interface UpkeepOptions {
  readonly restore: Restore
  readonly amends: Amends
  /** Absent if it is off. */
  readonly sync: Sync | undefined
  readonly ghosts: Ghosts
  readonly now: () => Millis
}

export function createUpkeep({ restore, amends, sync, ghosts, now }: UpkeepOptions): Upkeep {
  return {
    prepare: async target => sync?.prepare(target),
    wishes(target, found) {
      const wished = sync?.wishes(target, found) ?? []
      const owed = [...restore.wishes(target, found), ...amends.wishes(target, found)]
      // A claimed holder gets its members, so nothing is restored there.
      const claimed = new Set(wished.map(({ holder }) => holder))
      return [...wished, ...owed.filter(({ holder }) => !claimed.has(holder))]
    },
    taken: one => restore.taken(one),
    ghosts: () => ghosts.found(),
    wrote: one => amends.wrote(one),
    observer: writer => ({
      drain(before, after) {
        const uid = (after ?? before)?.uid
        if (uid === undefined) return
        if (after?.phase === 'undone') restore.undone(uid, now())
        else if (!after && before && before.phase !== 'undone') restore.over(before.pod, now())
      },
      round() {
        ghosts.look(now())
        for (const target of [
          ...restore.targets(now()),
          ...amends.targets(now()),
          ...(sync?.targets(now()) ?? [])
        ])
          writer.tend(target)
      }
    })
  }
}
