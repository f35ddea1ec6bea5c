import type { Clock } from '../base/clock.ts'
import type { Millis } from '../drain/facts.ts'

/** Whether this process was away: stopped (SIGSTOP), paused with its machine, or without any CPU. */
interface Absence {
  /** When it was last back; `-Infinity`: it has always been here. The first call after an absence detects it. */
  resumedAt(): Millis
  stop(): void
}

/** How often it is seen to be here, and the gap that is an absence, in ms: longer than a slow turn of the event loop. */
const EVERY_MS = 250
const AWAY_MS = 1500

/**
 * Seen by the gap between two ticks of the monotonic clock: what the wall clock shows may be a step of it. Timers that are overdue
 * fire before anything is heard that came in meanwhile, so whoever acts by the time asks here first.
 *
 * @param onResume called once for each absence
 */
export function watchAbsence(clock: Clock, onResume: () => void): Absence {
  let seenAt = clock.now()
  let resumed = -Infinity
  const look = (): void => {
    const now = clock.now()
    const gap = now - seenAt
    seenAt = now
    if (gap < AWAY_MS) return
    resumed = now
    onResume()
  }
  let cancel = () => {}
  const schedule = (): void => {
    cancel = clock.alarm(clock.now() + EVERY_MS, () => {
      look()
      schedule()
    })
  }
  schedule()
  return {
    resumedAt() {
      look()
      return resumed
    },
    stop: () => cancel()
  }
}
