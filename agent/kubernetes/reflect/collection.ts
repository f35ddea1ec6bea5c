import { ApiError, isExpired } from '../transport/objects.ts'
import type { Connection } from '../transport/connection.ts'
import { fieldsOf, textOf } from '../../base/read.ts'

/** `metadata.resourceVersion`: a decimal number that grows over the whole cluster (comparable by contract since 1.35). */
export type Revision = string

const DECIMAL = /^[1-9][0-9]*$/

/**
 * Whether `a` is later than `b`. They are compared as text, so no precision is lost. False if one of them is not a number: their order is
 * then unknown, so the caller does not conclude that the server went back in time.
 */
export function isLater(a: Revision | undefined, b: Revision | undefined): boolean {
  if (a === undefined || b === undefined || !DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a > b : a.length > b.length
}

/** The label with the Service's name on each of its slices. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

/** A set of objects of one kind that can be listed and watched. */
export interface Collection {
  /** Such as `/api/v1/namespaces/shop/pods`. */
  readonly path: string
  readonly labelSelector?: string | undefined
}

export type Params = Readonly<Record<string, string | number | boolean | undefined>>

/** The path and query of a request for a collection. Parameters that are `undefined` are left out. */
export function pathOf({ path, labelSelector }: Collection, params: Params = {}): string {
  const query = new URLSearchParams()
  const all: Params = { labelSelector, ...params }
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && value !== '') query.set(name, String(value))
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

export const podsIn = (namespace: string | undefined, labelSelector?: string): Collection => ({
  path: `/api/v1${scopeOf(namespace)}/pods`,
  labelSelector
})

export const slicesIn = (namespace: string | undefined): Collection => ({
  path: `/apis/discovery.k8s.io/v1${scopeOf(namespace)}/endpointslices`
})

export const slicesOf = (namespace: string, service: string): Collection => ({
  ...slicesIn(namespace),
  labelSelector: `${SERVICE_LABEL}=${service}`
})

export const servicesIn = (namespace: string | undefined): Collection => ({
  path: `/api/v1${scopeOf(namespace)}/services`
})

const scopeOf = (namespace: string | undefined) =>
  namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`

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
  connection: Pick<Connection, 'request'>,
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
  connection: Pick<Connection, 'request'>,
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
