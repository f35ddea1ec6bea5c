import type { Ack, Drain } from '../rules/drain/drain.ts'
import type { Log } from '../base/log.ts'
import type { Memory } from './gather/memory.ts'

/** Notified of each new phase, answer and round; read-only. */
export interface Observer {
  /** A drain changed its phase. `before` is undefined when the drain begins, `after` when the drain is forgotten. */
  drain?(before: Drain | undefined, after: Drain | undefined, memory: Memory): void
  ack?(ack: Ack, drain: Drain | undefined, memory: Memory): void
  round?(tookMs: number): void
}

/** Notifies all observers. An observer that fails never fails the caller: reporting must not keep a hook from its answer. */
export const createNotifier =
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
