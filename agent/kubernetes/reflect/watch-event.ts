import { watchError, type ApiError } from '../transport/api-error.ts'
import { readLine } from '../transport/objects.ts'
import { fieldsOf, textOf } from '../../base/read.ts'
import type { Revision } from './revision.ts'

/** The identity of an object of any kind. */
export interface ObjectMeta {
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
