import type { Millis } from '../drain/facts.ts'

/** `connecting` until the first sync; `stale`: what is held may be older than the cluster, and is used all the same. */
export type WatchState = 'connecting' | 'live' | 'stale'

export interface WatchStatus {
  readonly state: WatchState
  /** Everything has been seen once. Never goes back to false. */
  readonly synced: boolean
  /** When the server last said anything on the watch, bookmarks too. */
  readonly lastEventAt: Millis | undefined
  readonly objects: number
  /** Why it is not live, in words; empty where it is. */
  readonly problem: string
  readonly counters: WatchCounters
}

interface WatchCounters {
  readonly events: number
  readonly lists: number
  readonly failures: number
  /** Objects that could not be made into a fact. */
  readonly unreadable: number
  /** Times a watch did not show what was known to have happened. */
  readonly silences: number
}
