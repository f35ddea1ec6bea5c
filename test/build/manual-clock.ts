import type { Clock } from '../../agent/base/clock.ts'

interface Alarm {
  at: number
  wake: () => void
}

/** A clock that a test moves by hand: `advance` runs every due alarm, in order, at its own time. */
export interface ManualClock extends Clock {
  advance(ms: number): void
  readonly pending: number
}

export function manualClock(start = 1_000_000): ManualClock {
  let now = start
  const alarms = new Set<Alarm>()
  const alarm = (at: number, wake: () => void) => {
    const entry = { at, wake }
    alarms.add(entry)
    return () => void alarms.delete(entry)
  }
  return {
    now: () => now,
    alarm,
    soon: run => queueMicrotask(run),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const cancel = alarm(now + ms, resolve)
        signal?.addEventListener('abort', () => (cancel(), reject(signal.reason)), { once: true })
      }),
    advance(ms) {
      const end = now + ms
      for (;;) {
        const [next] = [...alarms].filter(a => a.at <= end).sort((a, b) => a.at - b.at)
        if (!next) break
        alarms.delete(next)
        now = Math.max(now, next.at)
        next.wake()
      }
      now = end
    },
    get pending() {
      return alarms.size
    }
  }
}
