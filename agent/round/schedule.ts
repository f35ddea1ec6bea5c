import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Millis } from '../rules/drain/facts.ts'
import type { Drain } from '../rules/drain/drain.ts'
import type { Sources } from './gather/sources.ts'

interface ScheduleOptions {
  readonly clock: Clock
  readonly log: Log
  readonly round: (now: Millis) => void
  /** Called after each completed round. */
  readonly ended: (tookMs: number) => void
}

/** The wait after a failed round, in ms. A defect must not cause a busy loop, and no deadline may be missed. */
const AFTER_FAILURE_MS = 1000
/**
 * The pause after a round grows with the square of its duration. With hundreds of drains, every new hook asks for a round over all
 * of them. Answers come sooner if most of the time goes to the hooks. After a round of 8 ms the pause is 8 ms, after 20 ms 50 ms.
 * The longest pause is 100 ms.
 */
const restAfter = (tookMs: number): number => (tookMs < 2 ? 0 : Math.min(tookMs ** 2 / 8, 100))

/** When rounds run. The only owner of that state. */
export function createSchedule({ clock, log, round, ended }: ScheduleOptions) {
  const alarm = createAlarm(clock, wake)
  let due = false
  let stopped = false
  let failing = false
  let restUntil: Millis = 0

  function wake(): void {
    if (due || stopped) return
    due = true
    if (clock.now() >= restUntil) clock.soon(run)
    else clock.alarm(restUntil, run)
  }

  function run(): void {
    due = false
    if (stopped) return
    const startedAt = clock.now()
    try {
      round(startedAt)
      failing = false
    } catch (err) {
      failing = true
      log.error({ err }, 'round failed')
      return alarm.set(startedAt + AFTER_FAILURE_MS)
    }
    const endedAt = clock.now()
    const tookMs = endedAt - startedAt
    restUntil = endedAt + restAfter(tookMs)
    ended(tookMs)
  }

  return {
    /** Requests a round, because something has changed. */
    wake,
    /** The next round runs at this time, unless something asks for an earlier one. */
    set: (at: Millis) => alarm.set(at),
    /** Whether the last round failed. The agent decides nothing until a round completes. */
    isFailing: (): boolean => failing,
    stop() {
      stopped = true
      alarm.stop()
    }
  }
}

/** One alarm that wakes the loop. Each new time replaces the previous one. */
export function createAlarm(clock: Clock, wake: () => void) {
  let cancel = () => {}
  let stopped = false
  return {
    set(at: Millis) {
      if (stopped) return
      cancel()
      cancel = clock.alarm(at, wake)
    },
    /** Stops the alarm permanently. */
    stop() {
      stopped = true
      cancel()
    }
  }
}

/** Minimum gap between listings for new drains, in ms: pods that end together share one listing. */
const APART_MS = 500

/**
 * Decides when the holders are listed, in addition to the usual interval.
 *
 * A new drain needs a listing of the holders that is newer than the drain. Later, the holders are listed every `guardEveryMs`, because a
 * writer may put the node back. All drains share one listing.
 */
export function createRelister({ inventory }: Pick<Sources, 'inventory'>, guardEveryMs: number) {
  let relistedAt: Millis | undefined
  let dueAt: Millis | undefined

  return {
    /** Starts a listing if one is due. Returns when to ask again; `undefined` if no drain needs a listing. */
    relist(drains: Iterable<Drain>, now: Millis): Millis | undefined {
      const active = [...drains].filter(drain => drain.phase !== 'undone')
      if (active.length === 0) return (dueAt = undefined)
      const listedAt = Math.max(inventory.readAt() ?? 0, relistedAt ?? 0)
      const isNew = active.some(drain => drain.since > listedAt)
      // One listing after a pod is gone shows whether a writer has put its node back. A ghost that appears later can wait for the usual
      // interval.
      const isSettled = (drain: Drain) => drain.phase === 'gone' && drain.at <= listedAt
      if (!isNew && active.every(isSettled)) return (dueAt = undefined)
      const guardAt = (relistedAt ?? listedAt) + guardEveryMs
      const wantedAt = isNew ? (relistedAt ?? -Infinity) + APART_MS : guardAt
      dueAt = Math.min(dueAt ?? Infinity, wantedAt)
      if (now < dueAt) return dueAt
      relistedAt = now
      dueAt = undefined
      void inventory.refresh()
      return now + guardEveryMs
    }
  }
}
