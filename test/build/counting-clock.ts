import { systemClock, type Clock } from '../../agent/base/clock.ts'

/** The agent's clock, which also counts the alarms and sleeps that have neither fired nor been cancelled. */
export interface CountingClock extends Clock {
  readonly pending: number
  /**
   * Begins a pause, and returns the function that ends it. During a pause time passes but no alarm fires, as in a process
   * stopped by SIGSTOP. When the last pause ends, due alarms fire before any later input.
   */
  pause(): () => void
}

export function countingClock(): CountingClock {
  const alarms = new Set<object>()
  let sleeping = 0
  let pauses = 0
  let held: (() => void)[] = []
  const whenAwake = (run: () => void): void => {
    if (pauses === 0) run()
    else held.push(run)
  }
  return {
    get pending() {
      return alarms.size + sleeping
    },
    pause() {
      pauses += 1
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        pauses -= 1
        if (pauses > 0) return
        const due = held
        held = []
        for (const run of due) run()
      }
    },
    now: () => systemClock.now(),
    soon: run => systemClock.soon(() => whenAwake(run)),
    async sleep(ms, signal) {
      sleeping += 1
      try {
        await systemClock.sleep(ms, signal)
        if (pauses === 0) return
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        whenAwake(resolve)
        signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        await promise
      } finally {
        sleeping -= 1
      }
    },
    alarm(at, wake) {
      const one = {}
      alarms.add(one)
      let cancelled = false
      const cancel = systemClock.alarm(at, () =>
        whenAwake(() => {
          if (cancelled) return
          alarms.delete(one)
          wake()
        })
      )
      return () => {
        cancelled = true
        alarms.delete(one)
        cancel()
      }
    }
  }
}
