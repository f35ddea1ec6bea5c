import type { Clock } from '../../base/clock.ts'
import type { Collection } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import { currentRevision } from './list.ts'
import { isLater, type Revision } from './revision.ts'

/** The revision that a watch has reached. `turn` changes with every new stream. */
export interface Position {
  readonly turn: object
  readonly revision: Revision | undefined
}

interface HeartbeatOptions {
  readonly connection: Connection
  readonly collection: Collection
  readonly clock: Clock
  readonly everyMs: number
  /** `undefined` while the watch is not live, because it is then being restarted already. */
  readonly position: () => Position | undefined
  /** Called if the server's revision is older than the watch's: it was restored from a backup, and this watch stays silent for ever. */
  readonly behind: (now: Revision) => void
  /** Called with a revision that the watch must reach. */
  readonly expect: (now: Revision) => void
}

/**
 * Polls the server's current revision by quorum, without the watch: a watch that went silent is found out. It only reads, so it needs no
 * right to write and costs etcd nothing.
 *
 * @returns a function that stops it
 */
export function startHeartbeat(options: HeartbeatOptions): () => void {
  const { connection, collection, clock, everyMs, position, behind, expect } = options
  const stopping = new AbortController()
  let cancel = () => {}

  const beat = async () => {
    // Read before the request: an event may overtake the answer, which does not mean that the server went back in time.
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
      // A failed request shows nothing about the watch; pings and the next heartbeat do.
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
