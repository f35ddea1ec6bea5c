import { isDeepStrictEqual } from 'node:util'
import type { AdminApi, AdminObject } from '../../agent/gateway/apisix/admin-api.ts'
import { CodedError } from '../../agent/base/errors.ts'
import type { Resource } from '../../agent/rules/plan/holder.ts'
import type { JsonObject } from '../../sandbox/apisix/json.ts'
import { mergePatch } from '../../sandbox/apisix/merge.ts'

/** An Admin API in this process, for tests that would be slow over sockets. It keeps objects as the stand-in does. */
export interface MemoryAdmin {
  readonly admin: AdminApi
  value(resource: Resource, id: string): JsonObject | undefined
  /** Stores it as another writer would, without a call of `onWrite`. */
  set(resource: Resource, id: string, value: JsonObject): void
  readonly writes: () => number
}

export interface MemoryAdminOptions {
  /** Called before every call: the call fails with the returned error. */
  readonly fails?: () => Error | undefined
  readonly onWrite?: (
    resource: Resource,
    id: string,
    before: JsonObject | undefined,
    after: JsonObject
  ) => void
}

export function memoryAdmin({ fails, onWrite }: MemoryAdminOptions = {}): MemoryAdmin {
  const objects = new Map<string, AdminObject>()
  let revision = 0
  let writes = 0
  const meet = () => {
    const error = fails?.()
    if (error) throw error
  }
  const set = (resource: Resource, id: string, value: JsonObject): AdminObject => {
    const object: AdminObject = { resource, id, value, revision: ++revision }
    objects.set(`${resource}/${id}`, object)
    return object
  }
  const must = (resource: Resource, id: string): AdminObject => {
    const found = objects.get(`${resource}/${id}`)
    if (!found) throw new CodedError('ADMIN_GONE', `${resource}/${id}`, { status: 404 })
    return found
  }
  const write = (resource: Resource, id: string, after: JsonObject): AdminObject => {
    const before = objects.get(`${resource}/${id}`)?.value as JsonObject | undefined
    writes++
    onWrite?.(resource, id, before, after)
    return {
      ...(isDeepStrictEqual(before, after) ? must(resource, id) : set(resource, id, after)),
      revision: 0
    }
  }
  return {
    admin: {
      pageSize: 500,
      async list(resource) {
        meet()
        const list = [...objects.values()].filter(object => object.resource === resource)
        return { total: list.length, objects: list }
      },
      async get(resource, id) {
        meet()
        return must(resource, id)
      },
      async patch(resource, id, body) {
        meet()
        return write(resource, id, mergePatch(must(resource, id).value as JsonObject, body as JsonObject))
      },
      async put(resource, id, body) {
        meet()
        return write(resource, id, body as JsonObject)
      },
      standalone: () => Promise.resolve(undefined),
      close() {}
    },
    value: (resource, id) => objects.get(`${resource}/${id}`)?.value as JsonObject | undefined,
    set: (resource, id, value) => void set(resource, id, value),
    writes: () => writes
  }
}
