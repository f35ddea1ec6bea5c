import type { Log } from '../../base/log.ts'
import { isLater, type Revision } from './collection.ts'
import { type Sink, metaOf, type ObjectMeta } from './follow.ts'

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
