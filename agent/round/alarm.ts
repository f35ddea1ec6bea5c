import type { Clock } from '../base/clock.ts'
import type { Millis } from '../drain/facts.ts'

/** One alarm that wakes the loop: the next one takes the place of the last. */
interface Alarm {
  set(at: Millis): void
  /** As it is set, or at this time where that is sooner. */
  noLaterThan(at: Millis): void
  /** For good. */
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
