import { setTimeout as wait } from 'node:timers/promises'

/** The agent's time. All code that decides gets a Clock, so tests can move it. */
export interface Clock {
  /** Milliseconds since the epoch. Never goes backwards, even if the host's clock is set. */
  now(): number
  /** Resolves after `ms`. Rejects if the signal aborts first. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `wake` once, at or after `at` (ms since the epoch, by this clock). Returns the function that cancels the alarm. */
  alarm(at: number, wake: () => void): () => void
  /** Calls `run` once, after the events of the current turn, so that one call can handle all of them. */
  soon(run: () => void): void
}

/** The longest delay that a Node timer takes (2^31 - 1 ms). A timer with a longer delay fires at once. */
const LONGEST = 2_147_483_647

export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: async (ms, signal) => {
    await wait(Math.min(Math.max(ms, 0), LONGEST), undefined, { ref: false, ...(signal && { signal }) })
  },
  alarm: (at, wake) => {
    const timer = setTimeout(wake, Math.min(Math.max(at - systemClock.now(), 0), LONGEST))
    timer.unref()
    return () => clearTimeout(timer)
  },
  soon: run => void setImmediate(run)
}

/** Keeps the process alive until the returned function is called. The timers of a Clock do not keep it alive. */
export function stayAwake(): () => void {
  const timer = setInterval(() => {}, LONGEST)
  return () => clearInterval(timer)
}

/** Subscribers to changes. Notifications carry no payload: subscribers read the new state themselves. */
export function createListeners() {
  const all = new Set<() => void>()
  return {
    /** Returns the function that unsubscribes. */
    add(listener: () => void): () => void {
      all.add(listener)
      return () => void all.delete(listener)
    },
    notify: () => {
      for (const listener of all) listener()
    }
  }
}

/** Wakes all that wait for it at once; without a waiter, `wake` does nothing. */
export function createWakeup() {
  let next = Promise.withResolvers<void>()
  return {
    wake: () => {
      next.resolve()
      next = Promise.withResolvers()
    },
    woken: () => next.promise
  }
}
