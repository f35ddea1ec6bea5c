import type { Clock } from '../clock.ts'
import type { Millis } from '../drain/facts.ts'

/** One alarm that wakes the loop: the next one takes the place of the last. */
export interface Alarm {
  set(at: Millis): void
  /** As it is set, or at this time where that is sooner. */
  noLaterThan(at: Millis): void
  cancel(): void
}

export function createAlarm(clock: Clock, wake: () => void): Alarm {
  let due: Millis = Infinity
  let cancel = () => {}
  const set = (at: Millis) => {
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
    cancel: () => cancel()
  }
}
