import type { Clock } from '../../base/clock.ts'
import { type Collection, currentRevision, isLater, type Revision } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import type { Millis } from '../../rules/drain/facts.ts'

/** The revision that a watch has reached. `turn` changes with every new stream. */
interface Position {
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
 * Polls the server's current revision by quorum, without the watch, and so detects a watch that went silent. It only reads, so it needs no
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

/**
 * The newest proof that a watch is complete.
 *
 * @param onAssured called after each proof
 */
export function createAssurance(
  options: Omit<AssuranceOptions, 'signal'>,
  stopping: AbortSignal,
  onAssured: () => void
) {
  let assuredAt: Millis | undefined
  let asking = new AbortController()
  const ask = async (): Promise<void> => {
    assuredAt = await assure({ ...options, signal: AbortSignal.any([stopping, asking.signal]) })
    onAssured()
  }
  return {
    /** When the last successful proof was requested; `undefined` before the first one. */
    at: (): Millis | undefined => assuredAt,
    /** Asks for a new proof, in place of one that is still open. */
    again() {
      asking.abort()
      asking = new AbortController()
      // It rejects if a newer call replaces it, or on stop.
      void ask().catch(() => {})
    }
  }
}

interface Expectation {
  /** `undefined`: any event is enough. */
  readonly revision: Revision | undefined
  readonly by: Millis
  readonly why: string
}

/**
 * Changes that are known from another source, and that a watch must show in time.
 *
 * @param onMissed called once, when the first expectation is overdue; all are then dropped
 */
export function createExpectations(clock: Clock, onMissed: (why: string) => void) {
  let open: readonly Expectation[] = []
  let cancel = () => {}
  const hold = (next: readonly Expectation[]) => {
    open = next
    cancel()
    cancel = () => {}
    const [first] = open.toSorted((a, b) => a.by - b.by)
    if (first) cancel = clock.alarm(first.by, () => (hold([]), onMissed(first.why)))
  }
  return {
    expect(revision: Revision | undefined, withinMs: number, why: string) {
      hold([...open, { revision, by: clock.now() + withinMs, why }])
    },
    /** The stream has reached this revision. */
    seen(revision: Revision | undefined) {
      if (open.length === 0) return
      const left = open.filter(e => e.revision !== undefined && isLater(e.revision, revision))
      if (left.length !== open.length) hold(left)
    },
    clear: () => hold([])
  }
}
