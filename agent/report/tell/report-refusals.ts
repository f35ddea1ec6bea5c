import type { Clock } from '../../base/clock.ts'
import { isDenied } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'

/** How often the log reports that the Admin API refuses the agent, in ms. */
const EVERY_MS = 60_000

/**
 * The only place that logs a refused key: at most one line a minute, however many parts call the Admin API. These parts show the refusal
 * in their state (a removal that failed, a listing that is old), and do not log it. Pass the result to every client of the Admin API.
 */
export function reportRefusals(clock: Clock, log: Log): (error: unknown) => void {
  let reportedAt = -Infinity
  return error => {
    if (!isDenied(error) || clock.now() < reportedAt + EVERY_MS) return
    reportedAt = clock.now()
    log.error({ err: error }, 'the Admin API refuses this agent')
  }
}
