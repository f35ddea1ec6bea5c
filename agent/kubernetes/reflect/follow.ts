import type { Clock } from '../../base/clock.ts'
import type { Connection } from '../transport/connection.ts'
import { pathOf, type Collection, type Params } from './collection.ts'
import type { Revision } from './revision.ts'
import { metaOf, parseWatchEvent } from './watch-event.ts'

/** The watch ended or fell silent during its initial events. */
export class NoEndMarker extends Error {
  override readonly name = 'NoEndMarker'
}

/** Receives the events of one watch. */
export interface Follower {
  /** The watch is open. Not called for a watch that begins with all existing objects. */
  opened(): void
  /** Data was received, even if only a bookmark. */
  heard(): void
  set(object: unknown): void
  gone(object: unknown): void
  /** All existing objects were shown, as of this revision. */
  listed(at: Revision): void
  /** The watch has reached this revision. */
  reached(revision: Revision | undefined): void
}

interface FollowOptions {
  readonly connection: Connection
  readonly collection: Collection
  readonly clock: Clock
  /** The longest pause within the initial events, in ms. */
  readonly initialIdleMs: number
}

/**
 * Runs one watch to its end. `initial`: it begins with all existing objects, and a bookmark marks their end (WatchList, KEP-3157).
 *
 * @throws NoEndMarker, ApiError for an event of type ERROR, CorruptLine, or Error if the connection breaks
 */
export async function follow(
  { connection, collection, clock, initialIdleMs }: FollowOptions,
  params: Params,
  initial: boolean,
  follower: Follower,
  signal: AbortSignal
): Promise<void> {
  const idle = new AbortController()
  let listing = initial
  let cancelIdle = () => {}
  const rearm = () => {
    cancelIdle()
    if (!listing) return
    const giveUp = () => idle.abort(new NoEndMarker('the initial events did not come to their end'))
    cancelIdle = clock.alarm(clock.now() + initialIdleMs, giveUp)
  }
  const onLine = (line: Buffer) => {
    const event = parseWatchEvent(collection.path, line)
    if (event.kind === 'error') throw event.error
    follower.heard()
    rearm()
    if (event.kind === 'bookmark') {
      if (listing && event.initialEnd && event.revision !== undefined) {
        listing = false
        cancelIdle()
        follower.listed(event.revision)
      } else if (!listing) follower.reached(event.revision)
      return
    }
    if (event.kind === 'set') follower.set(event.object)
    else follower.gone(event.object)
    // Initial events are sorted by name, so their revisions do not show how far the stream has come.
    if (!listing) follower.reached(metaOf(event.object)?.revision)
  }
  try {
    rearm()
    const path = pathOf(collection, { watch: true, allowWatchBookmarks: true, ...params })
    const onOpen = () => (initial ? undefined : follower.opened())
    await connection.stream(path, { onOpen, onLine }, AbortSignal.any([signal, idle.signal]))
    if (listing) throw new NoEndMarker('the watch ended within its initial events')
  } finally {
    cancelIdle()
  }
}
