import { systemClock, type Clock } from '../../agent/base/clock.ts'
import type { Millis } from '../../agent/rules/drain/facts.ts'

/** The agent's time passes this many times more slowly. */
const SLOWER = 50

/**
 * The agent's clock. It runs slowly from the moment `from` until the condition `until` holds. So a busy machine has seconds
 * for the work that the agent does in its last milliseconds before a deadline, and the deadline still comes.
 *
 * @param from the moment, by this clock; `undefined`: not known yet
 * @param until the condition, which is checked often
 */
export function slowClock(from: () => Millis | undefined, until: () => boolean): Clock {
  let seenAt = systemClock.now()
  let time = seenAt
  const now = () => {
    const passed = systemClock.now() - seenAt
    seenAt += passed
    const slowFrom = from() ?? Infinity
    const before = Math.min(passed, Math.max(0, slowFrom - time))
    time += before + (until() ? passed - before : (passed - before) / SLOWER)
    return time
  }
  const alarm: Clock['alarm'] = (at, wake) => {
    let cancel = () => {}
    const set = () => {
      const left = at - now()
      cancel = systemClock.alarm(systemClock.now() + left, () => (now() < at ? set() : wake()))
    }
    set()
    return () => cancel()
  }
  return {
    now,
    alarm,
    soon: run => systemClock.soon(run),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error)
        const abort = () => (cancel(), reject(signal?.reason as Error))
        const cancel = alarm(now() + ms, () => (signal?.removeEventListener('abort', abort), resolve()))
        signal?.addEventListener('abort', abort, { once: true })
      })
  }
}
