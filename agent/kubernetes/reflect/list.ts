import { ApiError, isExpired } from '../transport/api-error.ts'
import { pathOf, type Collection, type Params } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import { fieldsOf, textOf } from '../../base/read.ts'
import type { Revision } from './revision.ts'

const PAGE = 500

/** How often a list is tried if its pages expire (410). After that, the error goes to the caller's back-off. */
const ATTEMPTS = 3

interface ListHandlers {
  /** The list begins, perhaps again: discard the items of an earlier attempt. */
  readonly onBegin: () => void
  readonly onItem: (object: unknown) => void
}

/** Requests a state no older than `revision`; `undefined` = the newest, by quorum. */
export const notOlderThan = (revision: Revision | undefined): Params =>
  revision === undefined ? {} : { resourceVersion: revision, resourceVersionMatch: 'NotOlderThan' }

/**
 * Lists a collection page by page. If pages expire meanwhile (410), it begins again.
 *
 * @returns the revision to watch from
 * @throws ApiError on any status other than 200; and the errors of `connection.request`
 */
export async function list(
  connection: Connection,
  collection: Collection,
  revision: Revision | undefined,
  handlers: ListHandlers,
  signal: AbortSignal
): Promise<Revision> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await listOnce(connection, collection, revision, handlers, signal)
    } catch (error) {
      if (!(error instanceof PagesExpired)) throw error
      if (attempt === ATTEMPTS) throw error.cause
    }
  }
}

class PagesExpired extends Error {}

async function listOnce(
  connection: Connection,
  collection: Collection,
  revision: Revision | undefined,
  { onBegin, onItem }: ListHandlers,
  signal: AbortSignal
): Promise<Revision> {
  onBegin()
  let params: Params = notOlderThan(revision)
  for (;;) {
    const path = pathOf(collection, { limit: PAGE, ...params })
    const reply = await connection.request('GET', path, undefined, signal, onItem)
    if (reply.status !== 200) {
      const error = new ApiError(`list ${collection.path}`, reply.status, reply.json, reply.retryAfterMs)
      throw isExpired(error) && 'continue' in params ? new PagesExpired('', { cause: error }) : error
    }
    const meta = fieldsOf(fieldsOf(reply.json)['metadata'])
    const next = textOf(meta['continue'])
    if (next !== undefined) params = { continue: next }
    else {
      const at = textOf(meta['resourceVersion'])
      if (at === undefined) throw new Error(`list ${collection.path}: the answer is not a list`)
      return at
    }
  }
}

/** The present revision of the collection, by quorum, which every watch must reach. Transfers one object. */
export async function currentRevision(
  connection: Connection,
  collection: Collection,
  signal: AbortSignal
): Promise<Revision | undefined> {
  const reply = await connection.request('GET', pathOf(collection, { limit: 1 }), undefined, signal)
  if (reply.status !== 200) {
    throw new ApiError(`list ${collection.path}`, reply.status, reply.json, reply.retryAfterMs)
  }
  return textOf(fieldsOf(fieldsOf(reply.json)['metadata'])['resourceVersion'])
}
