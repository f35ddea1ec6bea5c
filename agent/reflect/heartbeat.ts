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
  /** `undefined` while the watch is not live: it is being restarted already. */
  readonly position: () => Position | undefined
  /** The server's revision is older than the watch's: it was restored from a backup, and this watch stays silent for ever. */
  readonly behind: (now: Revision) => void
  /** The watch must reach this revision. */
  readonly expect: (now: Revision) => void
}

/**
 * Polls the server's current revision, past the watch and by quorum. Read-only on purpose, see
 * docs/decisions/0001-read-only-heartbeat.md.
 *
 * @returns a function that stops it
 */
export function startHeartbeat(options: HeartbeatOptions): () => void {
  const { connection, collection, clock, everyMs, position, behind, expect } = options
  const stopping = new AbortController()
  let cancel = () => {}

  const beat = async () => {
    // Taken before the request: an event may overtake its answer, which is no sign that the server went back in time.
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
      // A failed request shows nothing about the watch; pings and the next beat do.
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
