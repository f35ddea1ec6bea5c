import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Collection } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import type { Position } from './heartbeat.ts'
import { currentRevision } from './list.ts'
import { isLater, type Revision } from './revision.ts'

interface AssuranceOptions {
  readonly connection: Connection
  readonly collection: Collection
  readonly clock: Clock
  /** `undefined` while the watch is not live. */
  readonly position: () => Position | undefined
  /** Called if the server's current revision is older than the watch's. */
  readonly behind: (now: Revision) => void
  readonly signal: AbortSignal
}

/** The pause before the server is asked again, and the time for events on their way, in ms. */
const AGAIN_MS = 250

/**
 * Makes sure that a watch is complete: asks the server for its revision until it answers and the watch has shown everything up to it. The
 * answer comes on the watch's connection, after everything that was sent before it. Most revisions belong to other collections. So if the
 * watch has not reached the revision, it gets a moment more, and must still be the same watch.
 *
 * @returns when the server was asked
 * @throws the reason of the signal
 */
async function assure(options: AssuranceOptions): Promise<Millis> {
  const { connection, collection, clock, position, behind, signal } = options
  for (;;) {
    const before = position()
    const askedAt = clock.now()
    if (before) {
      const now = await currentRevision(connection, collection, signal).catch(() => undefined)
      signal.throwIfAborted()
      const isSame = () => position()?.turn === before.turn
      if (now !== undefined && isSame()) {
        if (isLater(before.revision, now)) behind(now)
        else if (!isLater(now, position()?.revision)) return askedAt
        else {
          await clock.sleep(AGAIN_MS, signal)
          if (isSame()) return askedAt
          continue
        }
      }
    }
    await clock.sleep(AGAIN_MS, signal)
  }
}

/** The newest proof that a watch is complete. */
interface Assurance {
  /** When the last successful proof was requested; `undefined` before the first one. */
  at(): Millis | undefined
  /** Asks for a new proof, in place of one that is still open. */
  again(): void
}

/** @param onAssured called after each proof */
export function createAssurance(
  options: Omit<AssuranceOptions, 'signal'>,
  stopping: AbortSignal,
  onAssured: () => void
): Assurance {
  let assuredAt: Millis | undefined
  let asking = new AbortController()
  const ask = async (): Promise<void> => {
    assuredAt = await assure({ ...options, signal: AbortSignal.any([stopping, asking.signal]) })
    onAssured()
  }
  return {
    at: () => assuredAt,
    again() {
      asking.abort()
      asking = new AbortController()
      // It rejects if a newer call replaces it, or on stop.
      void ask().catch(() => {})
    }
  }
}
