import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'

/** The last fact of an object that is gone. */
export interface Tombstone<F> {
  readonly at: Millis
  readonly fact: F
}

interface Tombstones<F> {
  add(uid: string, fact: F): void
  get(uid: string): Tombstone<F> | undefined
  /** Objects gone at or after this time, newest first. The cost depends only on the size of the result. */
  since(at: Millis): readonly Tombstone<F>[]
  remove(uid: string): void
  readonly size: number
}

/** Bounded by number and by age: a hook may call after its pod's object is gone, but not an hour later. */
export function createTombstones<F>(clock: Clock, most = 10_000, maxAgeMs = 3_600_000): Tombstones<F> {
  // A Map iterates in the order of insertion, so the oldest are always first.
  const stones = new Map<string, Tombstone<F>>()
  const expired = (stone: Tombstone<F>) => clock.now() - stone.at > maxAgeMs
  // The same stones in an array, because a Map cannot be read from its end; removed entries are skipped.
  let inOrder: { readonly uid: string; readonly stone: Tombstone<F> }[] = []
  const sweep = () => {
    for (const [uid, stone] of stones) {
      if (stones.size <= most && !expired(stone)) return
      stones.delete(uid)
    }
  }
  return {
    add(uid, fact) {
      stones.delete(uid)
      const stone = { at: clock.now(), fact }
      stones.set(uid, stone)
      inOrder.push({ uid, stone })
      if (inOrder.length > 2 * most) inOrder = inOrder.slice(-most)
      sweep()
    },
    get(uid) {
      const stone = stones.get(uid)
      return stone && !expired(stone) ? stone : undefined
    },
    since(at) {
      const found: Tombstone<F>[] = []
      for (let i = inOrder.length - 1; i >= 0; i -= 1) {
        const entry = inOrder[i]
        if (!entry || entry.stone.at < at) break
        if (stones.get(entry.uid) === entry.stone) found.push(entry.stone)
      }
      return found
    },
    remove: uid => void stones.delete(uid),
    get size() {
      sweep()
      return stones.size
    }
  }
}
