import type { Clock } from '../base/clock.ts'
import type { Millis } from '../rules/drain/facts.ts'

/** One alarm that wakes the loop. Each new time replaces the previous one. */
interface Alarm {
  set(at: Millis): void
  /** Moves the alarm to this time if it is set for later. */
  noLaterThan(at: Millis): void
  /** Stops the alarm permanently. */
  stop(): void
}

export function createAlarm(clock: Clock, wake: () => void): Alarm {
  let due: Millis = Infinity
  let cancel = () => {}
  let stopped = false
  const set = (at: Millis) => {
    if (stopped) return
    cancel()
    due = at
    cancel = clock.alarm(at, () => {
      due = Infinity
      wake()
    })
  }
  return {
    set,
    noLaterThan(at) {
      if (at < due) set(at)
    },
    stop() {
      stopped = true
      cancel()
    }
  }
}
