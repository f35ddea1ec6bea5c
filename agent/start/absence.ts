import type { Clock } from '../base/clock.ts'
import type { Millis } from '../rules/drain/facts.ts'

/** Whether this process was away: stopped (SIGSTOP), paused with its machine, or without any CPU. */
interface Absence {
  /** When it last came back; `-Infinity`: it was never away. The first call after an absence detects the absence. */
  resumedAt(): Millis
  stop(): void
}

/** The interval of the checks, and the gap that counts as an absence, in ms: longer than a slow turn of the event loop. */
const EVERY_MS = 250
const AWAY_MS = 1500

/**
 * An absence is a gap between two ticks of the monotonic clock, because the wall clock may have been set. Overdue timers fire
 * before any input that arrived meanwhile is read. So code that acts on time must ask here first.
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
