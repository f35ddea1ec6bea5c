import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Millis } from '../drain/facts.ts'
import { createAlarm } from './alarm.ts'

/** When rounds run. The only owner of that state. */
export interface Schedule {
  /** Something changed somewhere: a round follows. */
  wake(): void
  /** The next round comes at this time, if nothing else asks for one before. */
  set(at: Millis): void
  /** A round comes at this time or before. */
  noLaterThan(at: Millis): void
  /** The last round did not come to its end: nothing is decided until one does. */
  isFailing(): boolean
  stop(): void
}

interface ScheduleOptions {
  readonly clock: Clock
  readonly log: Log
  readonly round: (now: Millis) => void
  /** After a round that came to its end. */
  readonly ended: (tookMs: number) => void
}

/** After a round that failed: long enough not to spin on a defect, short enough for every deadline. */
const AFTER_FAILURE_MS = 1000
/**
 * A round rests by the square of its time: with hundreds of drains every hook that comes in asks for a round over all of them,
 * and is answered sooner where most of the time goes to the hooks. 8 ms rest as long, 20 ms rest 50, and none over 100.
 */
const restAfter = (tookMs: number): number => (tookMs < 2 ? 0 : Math.min(tookMs ** 2 / 8, 100))

export function createSchedule({ clock, log, round, ended }: ScheduleOptions): Schedule {
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
    wake,
    set: at => alarm.set(at),
    noLaterThan: at => alarm.noLaterThan(at),
    isFailing: () => failing,
    stop() {
      stopped = true
      alarm.stop()
    }
  }
}
