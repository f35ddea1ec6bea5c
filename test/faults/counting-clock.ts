import { systemClock, type Clock } from '../../agent/clock.ts'

/** The agent's clock, which also tells how many alarms and sleeps have neither come nor been cancelled. */
export interface CountingClock extends Clock {
  readonly pending: number
}

export function countingClock(): CountingClock {
  const alarms = new Set<object>()
  let sleeping = 0
  return {
    get pending() {
      return alarms.size + sleeping
    },
    now: () => systemClock.now(),
    soon: run => systemClock.soon(run),
    async sleep(ms, signal) {
      sleeping += 1
      try {
        await systemClock.sleep(ms, signal)
      } finally {
        sleeping -= 1
      }
    },
    alarm(at, wake) {
      const one = {}
      alarms.add(one)
      const cancel = systemClock.alarm(at, () => {
        alarms.delete(one)
        wake()
      })
      return () => {
        alarms.delete(one)
        cancel()
      }
    }
  }
}
