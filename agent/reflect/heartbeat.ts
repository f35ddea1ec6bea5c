import type { Clock } from '../base/clock.ts'
import type { Collection } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import { currentRevision } from './list.ts'
import { isLater, type Revision } from './revision.ts'

/** Where a watch is. `turn` changes with every new stream. */
export interface Position {
  readonly turn: object
  readonly revision: Revision | undefined
}

interface HeartbeatOptions {
  readonly connection: Connection
  readonly collection: Collection
  readonly clock: Clock
  readonly everyMs: number
  /** `undefined` while the watch is not live: the reflector restarts it already. */
  readonly position: () => Position | undefined
  /** The server's present is before what we have seen: it was restored from a backup, and this watch is silent for ever. */
  readonly behind: (now: Revision) => void
  /** The watch has to get as far as this. */
  readonly expect: (now: Revision) => void
}

/**
 * Asks the server from time to time how far it is, past the watch and by quorum. Read-only on purpose, see
 * docs/decisions/0001-read-only-heartbeat.md.
 *
 * @returns what stops it
 */
export function startHeartbeat(options: HeartbeatOptions): () => void {
  const { connection, collection, clock, everyMs, position, behind, expect } = options
  const stopping = new AbortController()
  let cancel = () => {}

  const beat = async () => {
    // Taken before the question is asked: an event may overtake the answer, and is no sign of time travel.
    const before = position()
    if (!before) return
    const now = await currentRevision(connection, collection, stopping.signal)
    if (now === undefined || position()?.turn !== before.turn) return
    if (isLater(before.revision, now)) behind(now)
    else expect(now)
  }
  const schedule = () => {
    if (stopping.signal.aborted) return
    cancel = clock.alarm(clock.now() + everyMs, () => {
      // A question that fails says nothing about the watch; pings and the next beat do.
      void beat()
        .catch(() => {})
        .finally(schedule)
    })
  }
  schedule()
  return () => {
    stopping.abort(new Error('stopped'))
    cancel()
  }
}
