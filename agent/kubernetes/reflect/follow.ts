import type { Clock } from '../../base/clock.ts'
import type { Connection } from '../transport/connection.ts'
import { pathOf, type Collection, type Params, type Revision, isLater } from './collection.ts'
import { watchError, type ApiError, readLine } from '../transport/objects.ts'
import { fieldsOf, textOf } from '../../base/read.ts'
import type { Log } from '../../base/log.ts'

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

/** The identity of an object of any kind. */
interface ObjectMeta {
  readonly uid: string
  /** `namespace/name`. */
  readonly name: string
  readonly revision: Revision | undefined
}

type WatchEvent =
  | { readonly kind: 'set' | 'gone'; readonly object: unknown }
  | { readonly kind: 'bookmark'; readonly revision: Revision | undefined; readonly initialEnd: boolean }
  | { readonly kind: 'error'; readonly error: ApiError }

/** A line of a watch that is not an event. Its content is lost, so the watch must restart at an earlier revision. */
class CorruptLine extends Error {
  override readonly name = 'CorruptLine'
}

const INITIAL_END = 'k8s.io/initial-events-end'

/** @throws CorruptLine */
export function parseWatchEvent(path: string, line: Buffer): WatchEvent {
  const { type, object } = fieldsOf(parsed(line))
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { kind: 'set', object }
    case 'DELETED':
      return { kind: 'gone', object }
    case 'BOOKMARK': {
      const meta = fieldsOf(fieldsOf(object)['metadata'])
      const initialEnd = fieldsOf(meta['annotations'])[INITIAL_END] === 'true'
      return { kind: 'bookmark', revision: textOf(meta['resourceVersion']), initialEnd }
    }
    case 'ERROR':
      return { kind: 'error', error: watchError(path, object) }
    default:
      throw new CorruptLine(`a watch event of type ${JSON.stringify(type) ?? 'none'}`)
  }
}

/** The uid and revision of an object; `undefined` if it has no uid. */
export function metaOf(object: unknown): ObjectMeta | undefined {
  const { uid, namespace, name, resourceVersion } = fieldsOf(fieldsOf(object)['metadata'])
  const id = textOf(uid)
  return id === undefined
    ? undefined
    : { uid: id, name: `${textOf(namespace) ?? ''}/${textOf(name) ?? ''}`, revision: textOf(resourceVersion) }
}

function parsed(line: Buffer): unknown {
  try {
    return readLine(line)
  } catch (error) {
    throw new CorruptLine('a line of a watch is not JSON', { cause: error })
  }
}

/** The receiver of a reflector's facts. Both methods return whether anything relevant has changed: most updates only change the status. */
export interface Sink<F> {
  set(fact: F): boolean
  /** `last` is the object's final state, if the server sent it. */
  gone(uid: string, last: F | undefined): boolean
}

/** Turns objects into facts, and records which objects this reflector has put into the sink. */
interface Intake {
  readonly set: (object: unknown) => void
  readonly gone: (object: unknown) => void
  /** Begins a list. All objects that are listed from now on exist; see `endList`. */
  readonly beginList: () => void
  /** Ends the list: known objects that it lacks are gone. This is reported only here, so a list that breaks off removes nothing. */
  readonly endList: (revision: Revision) => void
  /** Takes an object from another read. The watch's events for it count again once the watch has reached its revision. */
  readonly learn: (object: unknown) => void
  readonly knows: (uid: string) => boolean
  readonly known: number
}

export function createIntake<F extends { readonly uid: string }>(
  toFact: (object: unknown) => F | undefined,
  sink: Sink<F>,
  onChange: () => void,
  log: Log
): Intake {
  const known = new Set<string>()
  /** By `namespace/name`, because an earlier object of the same name must not return either. */
  const ahead = new Map<string, { readonly uid: string; readonly revision: Revision }>()
  let listed: Set<string> | undefined
  let unreadable = 0

  const overtaken = ({ name, revision }: ObjectMeta) => {
    const reached = ahead.get(name)
    if (reached === undefined) return false
    if (isLater(reached.revision, revision)) return true
    ahead.delete(name)
    return false
  }
  const read = (object: unknown): F | undefined => {
    const fact = toFact(object)
    if (fact) return fact
    unreadable += 1
    // A cluster full of unreadable objects must not flood the log.
    if (unreadable % 100 === 1) log.warn({ object: metaOf(object), unreadable }, 'object cannot be read')
    return undefined
  }
  const put = (object: unknown) => {
    const fact = read(object)
    if (!fact) return
    known.add(fact.uid)
    if (sink.set(fact)) onChange()
  }
  const bury = (uid: string, last: F | undefined) => {
    known.delete(uid)
    listed?.delete(uid)
    if (sink.gone(uid, last)) onChange()
  }

  return {
    set(object) {
      const meta = metaOf(object)
      // Readable or not, the object exists, and its last good fact stays.
      if (meta) listed?.add(meta.uid)
      if (!meta || !overtaken(meta)) put(object)
    },
    gone(object) {
      const meta = metaOf(object)
      if (!meta) {
        read(object)
        return
      }
      // The end of this uid is final, even if another read has already found the name: then it has a new owner.
      overtaken(meta)
      bury(meta.uid, toFact(object))
    },
    beginList: () => void (listed = new Set()),
    endList(revision) {
      const alive = listed ?? new Set()
      listed = undefined
      // Objects from other reads may be older than this list, and be gone since.
      for (const [name, { uid, revision: reached }] of ahead)
        if (isLater(reached, revision)) alive.add(uid)
        else ahead.delete(name)
      for (const uid of known) if (!alive.has(uid)) bury(uid, undefined)
    },
    learn(object) {
      const meta = metaOf(object)
      if (!meta?.revision) return
      ahead.set(meta.name, { uid: meta.uid, revision: meta.revision })
      put(object)
    },
    knows: uid => known.has(uid),
    get known() {
      return known.size
    }
  }
}
