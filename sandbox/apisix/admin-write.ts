import { setTimeout as wait } from 'node:timers/promises'
import { errorMessage, json, nginxPage, type Answer } from './answer.ts'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { asMap, mergePatch, patchAt } from './merge.ts'
import { checkResource, splitUpstreams } from './schema.ts'
import { idOf, keyOf, type Item, type PutOptions, type Store } from './store.ts'

/** A write to one object, its body parsed. */
export interface AdminWrite {
  readonly resource: string
  /** Empty for a POST to the collection. */
  readonly id: string
  readonly subPath: readonly string[]
  readonly body: Json | undefined
  readonly ttlSeconds: number | undefined
  readonly force: boolean
}

const notFound = (): Answer => json(404, { message: 'Key not found' })

/** A consumer's id is its user name; every other object's is `id`. */
const idField = (resource: string): string => (resource === 'consumers' ? 'username' : 'id')

const kindOf = (resource: string): string => resource.replace(/s$/, '').replaceAll('_', ' ')

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

const leased = ({ ttlSeconds }: AdminWrite): PutOptions => (ttlSeconds === undefined ? {} : { ttlSeconds })

/** PUT: replaces the whole object without compare-and-swap; only the creation time of the stored one is kept. */
export function put(store: Store, write: AdminWrite): Answer {
  const { resource } = write
  if (write.body === undefined) return errorMessage(400, 'missing configurations')
  const body = asMap(write.body)
  if (body === undefined) return nginxPage(500)
  const given = body[idField(resource)]
  const id = write.id || asText(given)
  if (id === '' && resource !== 'consumers') return errorMessage(400, `missing ${kindOf(resource)} id`)
  const wrong = wrongId(resource, given, id)
  if (wrong) return wrong
  const named = resource === 'consumers' ? body : { ...body, id: write.id || (given ?? id) }
  const no = forbiddenTime(body) ?? refused(resource, named, store)
  if (no) return no
  const key = keyOf(resource, id)
  const old = store.get(key)
  const now = nowSeconds()
  const value = { ...named, create_time: old?.value['create_time'] ?? now, update_time: now }
  store.put(key, value, leased(write))
  return stored(old ? 200 : 201, key, value)
}

const wrongId = (resource: string, given: Json | undefined, id: string): Answer | undefined => {
  if (given === undefined || asText(given) === id) return undefined
  return errorMessage(400, resource === 'consumers' ? 'wrong username' : `wrong ${kindOf(resource)} id`)
}

/** POST: stores the object as PUT does, under a new id. */
export function post(store: Store, write: AdminWrite): Answer {
  const { resource } = write
  if (resource === 'consumers') return errorMessage(405, 'not supported `POST` method for consumer')
  if (write.body === undefined) return errorMessage(400, 'missing configurations')
  const body = asMap(write.body)
  if (body === undefined) return nginxPage(500)
  if (write.id !== '' || body['id'] !== undefined)
    return errorMessage(400, `wrong ${kindOf(resource)} id, do not need it`)
  const no = forbiddenTime(body) ?? refused(resource, body, store)
  return no ?? put(store, { ...write, body, id: store.generateId() })
}

/** A client may not set the times of an object, or of its inline upstream. APISIX writes two spaces here, too. */
const forbiddenTime = (body: JsonObject): Answer | undefined => {
  const { upstream } = body
  for (const time of ['create_time', 'update_time']) {
    if (body[time] !== undefined) return errorMessage(400, `the property is forbidden:  ${time}`)
    if (isObject(upstream) && upstream[time] !== undefined)
      return errorMessage(400, `the property is forbidden:  upstream.${time}`)
  }
  return undefined
}

/**
 * PATCH: read, merge, compare-and-swap. The swap only guards the time from APISIX's own read to its own write (`gap`,
 * about 1 ms). The loser gets a 503, and nothing of its patch is written.
 */
export async function patch(store: Store, write: AdminWrite): Promise<Answer> {
  const { resource, id, subPath, body } = write
  if (id === '') return errorMessage(400, `missing ${kindOf(resource)} id`)
  if (body === undefined) return errorMessage(400, 'missing new configuration')
  const key = keyOf(resource, id)
  const old = store.get(key)
  if (!old) return notFound()
  // About the time of the real APISIX: the window for concurrent writers.
  await wait(1)
  const patched = patchedValue(old.value, subPath, body)
  if ('status' in patched) return patched
  const wrong = wrongId(resource, patched.value[idField(resource)], id)
  if (wrong) return wrong
  const value: JsonObject = {
    ...patched.value,
    [idField(resource)]: old.value[idField(resource)] ?? id,
    update_time: (subPath.length === 0 && isObject(body) && body['update_time']) || nowSeconds()
  }
  const no = refused(resource, value, store)
  if (no) return no
  const item = store.put(key, value, { ...leased(write), expected: old.modifiedIndex })
  return item ? stored(200, key, value) : errorMessage(503, 'value changed before overwritten')
}

export function remove(store: Store, { resource, id, force }: AdminWrite): Answer {
  if (id === '') return errorMessage(400, `missing ${kindOf(resource)} id`)
  const why = force ? '' : inUse(store, resource, id)
  if (why) return errorMessage(400, why)
  const key = keyOf(resource, id)
  return store.delete(key) ? json(200, { key, deleted: '1' }) : notFound()
}

const patchedValue = (
  old: JsonObject,
  subPath: readonly string[],
  body: Json
): Answer | { readonly value: JsonObject } => {
  if (subPath.length === 0) {
    const patch = asMap(body)
    return patch ? { value: mergePatch(old, patch) } : errorMessage(400, 'invalid configuration')
  }
  const result = patchAt(old, subPath, body)
  if (!result.ok) return errorMessage(400, result.problem)
  return isObject(result.value) ? { value: result.value } : errorMessage(400, 'invalid configuration')
}

const refused = (resource: string, value: JsonObject, store: Store): Answer | undefined => {
  const verdict = checkResource(resource, value, store)
  if (verdict.kind === 'ok') return undefined
  return verdict.kind === 'invalid' ? errorMessage(400, verdict.problem) : nginxPage(500)
}

/** Answers to writes carry no revision: a client that needs it must read again. */
const stored = (status: number, key: string, value: JsonObject): Answer => json(status, { key, value })

/** Why APISIX refuses to delete an object (without `force=true`), in its words; empty if nothing uses the object. */
function inUse(store: Store, resource: string, id: string): string {
  // APISIX searches its own memory, which keeps objects in the order of their creation.
  const inOrder = (of: string): Item[] => store.list(of).sort((a, b) => a.createdIndex - b.createdIndex)
  const routes = inOrder('routes')
  const names = (field: string) => (item: Item) => asText(item.value[field]) === id
  const refusal = (kind: string, user: string, item: Item | undefined): string =>
    item ? `can not delete this ${kind}, ${user} [${idOf(item.key)}] is still using it now` : ''
  switch (resource) {
    case 'upstreams':
      return (
        refusal('upstream', 'route', routes.find(names('upstream_id'))) ||
        refusal('upstream', 'service', inOrder('services').find(names('upstream_id'))) ||
        refusal('upstream', 'plugin in route', routes.find(splitsTo(id)))
      )
    case 'services':
      return refusal('service directly', 'route', routes.find(names('service_id')))
    case 'plugin_configs':
      return refusal('plugin config', 'route', routes.find(names('plugin_config_id')))
    default:
      return ''
  }
}

const splitsTo =
  (id: string) =>
  ({ value }: Item): boolean =>
    splitUpstreams(value).some(({ upstream_id: target }) => asText(target) === id)
