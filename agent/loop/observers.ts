import type { Log } from '../log.ts'
import type { Observer } from '../loop.ts'

/** Tells all observers: what is only shown must never keep a hook from its answer, so none of them can fail the caller. */
export const createTeller =
  (observers: readonly Observer[], log: Log) =>
  (of: (observer: Observer) => void): void => {
    for (const observer of observers) {
      try {
        of(observer)
      } catch (err) {
        log.error({ err }, 'observer failed')
      }
    }
  }
