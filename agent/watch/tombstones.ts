import type { Clock } from '../clock.ts'
import type { Millis } from '../drain/facts.ts'

/** What is remembered of an object after it is gone. */
export interface Tombstone<F> {
  readonly at: Millis
  readonly fact: F
}

export interface Tombstones<F> {
  add(uid: string, fact: F): void
  get(uid: string): Tombstone<F> | undefined
  remove(uid: string): void
  readonly size: number
}

/** Bounded by number and by age: a hook may come from a pod whose object is gone already, but not an hour later. */
export function createTombstones<F>(clock: Clock, most = 10_000, maxAgeMs = 3_600_000): Tombstones<F> {
  // A Map iterates in the order of insertion, so the oldest are always in front.
  const stones = new Map<string, Tombstone<F>>()
  const expired = (stone: Tombstone<F>) => clock.now() - stone.at > maxAgeMs
  const sweep = () => {
    for (const [uid, stone] of stones) {
      if (stones.size <= most && !expired(stone)) return
      stones.delete(uid)
    }
  }
  return {
    add(uid, fact) {
      stones.delete(uid)
      stones.set(uid, { at: clock.now(), fact })
      sweep()
    },
    get(uid) {
      const stone = stones.get(uid)
      return stone && !expired(stone) ? stone : undefined
    },
    remove: uid => void stones.delete(uid),
    get size() {
      sweep()
      return stones.size
    }
  }
}
