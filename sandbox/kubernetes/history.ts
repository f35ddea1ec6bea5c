import type { KubeObject } from './objects.ts'
import type { ResourceName } from './resources.ts'

/** One committed write. `object` has the resourceVersion of the write, even if it is the last state of a deleted object. */
export interface Change<T extends KubeObject = KubeObject> {
  readonly version: number
  readonly resource: ResourceName
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: T
  readonly previous: T | undefined
}

/** The window of past changes: a watch can start in it, and a list can show a state in it. */
export interface History {
  push(change: Change): void
  /** Changes after `version`, oldest first; undefined if the window no longer reaches back that far. */
  since(version: number): readonly Change[] | undefined
  /** The oldest version a watch may start from. */
  floor(): number
  /** Forgets everything; watches may start from `version` on. */
  restart(version: number): void
}

export function createHistory(limit: number, start: number): History {
  let changes: Change[] = []
  let oldest = start

  const firstAfter = (version: number): number => {
    let low = 0
    let high = changes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (changes[middle]!.version <= version) low = middle + 1
      else high = middle
    }
    return low
  }

  const drop = (count: number) => {
    if (count === 0) return
    oldest = Math.max(oldest, changes[count - 1]!.version)
    changes = changes.slice(count)
  }

  return {
    push(change) {
      changes.push(change)
      // Old changes are dropped in batches. Otherwise a full window would cost a copy per write.
      if (changes.length > limit * 2) drop(changes.length - limit)
    },
    since: version => (version < oldest ? undefined : changes.slice(firstAfter(version))),
    floor: () => oldest,
    restart(version) {
      changes = []
      oldest = version
    }
  }
}

/** Undoes `changes` (oldest first) on a copy of `objects`. Returns the objects as they were before the first change. */
export function rollBack<T extends KubeObject>(
  objects: ReadonlyMap<string, T>,
  changes: readonly Change[],
  keyOf: (object: KubeObject) => string
): Map<string, T> {
  const before = new Map(objects)
  for (const change of changes.toReversed()) {
    const key = keyOf(change.object)
    if (change.previous === undefined) before.delete(key)
    else before.set(key, change.previous as T)
  }
  return before
}
