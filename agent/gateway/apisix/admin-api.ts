import { z } from 'zod'

import { CodedError, isUnsupported, type ErrorCode } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import { arrayOf } from './barrier-wire.ts'
import { createHttp, type Call } from './http.ts'

/** An object as the Admin API returns it. `value` is unchanged: it keeps fields that the agent does not know. */
export interface AdminObject {
  readonly resource: Resource
  readonly id: string
  readonly value: Readonly<Record<string, unknown>>
  /** `modifiedIndex` (etcd's mod_revision); 0 in answers to writes, which do not have it. */
  readonly revision: number
}

export interface AdminPage {
  readonly total: number
  readonly objects: readonly AdminObject[]
  /** This APISIX has no such collection. */
  readonly isOff?: true
}

export interface AdminApi {
  /** One page, counted from 1. If stream proxying is off, the page of stream routes is empty. That is not an error. */
  list(resource: Resource, page: number, signal?: AbortSignal): Promise<AdminPage>
  get(resource: Resource, id: string, signal?: AbortSignal): Promise<AdminObject>
  /** Merge-PATCH: objects merge, `null` deletes a key, arrays are replaced as a whole. */
  patch(resource: Resource, id: string, body: unknown, signal?: AbortSignal): Promise<AdminObject>
  put(resource: Resource, id: string, body: unknown, signal?: AbortSignal): Promise<AdminObject>
  /** The whole configuration (`GET /apisix/admin/configs`), which only API-driven standalone mode has. `undefined` = etcd mode. */
  standalone(signal?: AbortSignal): Promise<Readonly<Record<string, unknown>> | undefined>
  /** Objects per page (10 to 500). */
  readonly pageSize: number
  close(): void
}

export interface AdminOptions {
  /** The origin of the Admin API, without a trailing slash and without `/apisix/admin`. */
  readonly url: string
  /** Called at each request, because keys are rotated. */
  readonly key: () => string
  /** PEM; undefined = the CAs of the system. */
  readonly ca?: (() => string) | undefined
  readonly timeoutMs: number
  readonly pageSize: number
  /** Largest body accepted, in bytes; default 16 MiB. */
  readonly maxBytes?: number
  /** See `HttpOptions.failed`. */
  readonly failed?: ((error: unknown) => void) | undefined
}

export const reply = z.looseObject({
  key: z.string(),
  value: z.record(z.string(), z.unknown()),
  modifiedIndex: z.number().default(0)
})
/** A list of items. Lua encodes an empty list as `{}`. */
export const listOf = <T>(item: z.ZodType<T>) =>
  z.union([arrayOf(item), z.looseObject({}).transform(() => [])])

const page = z.looseObject({ total: z.number(), list: listOf(z.custom<AdminObject>()) })

/** Each kind has its version, from the start. Whatever else a catch-all route answers here has none. */
const document = z.looseObject({ upstreams_conf_version: z.number() })

const noAdmin = () => Promise.reject(new Error('apisix.admin is not configured'))

/** In place of an Admin API, if none is configured: there is no object, so nothing is ever written. */
export const NO_ADMIN: AdminApi = {
  pageSize: Infinity,
  list: () => Promise.resolve({ total: 0, objects: [] }),
  standalone: noAdmin,
  get: noAdmin,
  patch: noAdmin,
  put: noAdmin,
  close() {}
}

/** @throws CodedError from every call; errors.ts has the checks for it */
export function createAdminApi(options: AdminOptions): AdminApi {
  const http = createHttp({
    api: 'ADMIN',
    keepAlive: true,
    maxSockets: 32,
    ca: options.ca,
    maxBytes: options.maxBytes ?? 16 * 1024 * 1024,
    failed: options.failed
  })
  const root = `${options.url.replace(/\/+$/, '')}/apisix/admin`
  // Never an `If-Match`: nginx applies the write first and answers 412 afterwards.
  const ask = (path: string, call: Pick<Call, 'method' | 'signal' | 'body' | 'each'>) =>
    http.json({
      ...call,
      url: `${root}/${path}`,
      headers: { 'X-API-KEY': options.key() },
      timeoutMs: options.timeoutMs
    })
  const one = async (
    method: Call['method'],
    resource: Resource,
    id: string,
    signal: AbortSignal | undefined,
    body?: unknown
  ) => {
    // URL parsers resolve these ids as directories, even if they are encoded.
    if (id === '.' || id === '..') throw new CodedError('ADMIN_REFUSED', `${method} of ${resource} "${id}"`)
    const path = `${resource}/${encodeURIComponent(id)}`
    return toObject(
      resource,
      checked(reply, await ask(path, { method, signal, body }), `${method} ${root}/${path}`)
    )
  }
  return {
    pageSize: options.pageSize,
    async list(resource, number, signal) {
      const path = `${resource}?page=${number}&page_size=${options.pageSize}`
      const asked = `GET ${root}/${path}`
      const each = (item: unknown) => toObject(resource, checked(reply, item, `${asked}: list`))
      try {
        const { total, list } = checked(page, await ask(path, { method: 'GET', signal, each }), asked)
        return { total, objects: list }
      } catch (error) {
        if (isUnsupported(error)) return { total: 0, objects: [], isOff: true }
        throw error
      }
    },
    get: (resource, id, signal) => one('GET', resource, id, signal),
    patch: (resource, id, body, signal) => one('PATCH', resource, id, signal, body),
    put: (resource, id, body, signal) => one('PUT', resource, id, signal, body),
    async standalone(signal) {
      try {
        return checked(document, await ask('configs', { method: 'GET', signal }), `GET ${root}/configs`)
      } catch (error) {
        if (isUnsupported(error)) return undefined
        throw error
      }
    },
    close: http.close
  }
}

export function toObject(
  resource: Resource,
  { key, value, modifiedIndex }: z.infer<typeof reply>
): AdminObject {
  // The key is `<etcd prefix>/upstreams/web`; consumers have no `id` in their value.
  return { resource, id: key.slice(key.lastIndexOf('/') + 1), value, revision: modifiedIndex }
}

/** @throws CodedError */
export function checked<T>(
  schema: z.ZodType<T>,
  body: unknown,
  asked: string,
  code: ErrorCode = 'ADMIN_GARBLED'
): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const where = parsed.error.issues[0]?.path.join('.') || 'the top level'
  throw new CodedError(code, `${asked}: unexpected at ${where}`, { cause: parsed.error })
}
