import { isObject, type Json, type JsonObject, asText } from './json.ts'
import { RESOURCES } from './resources.ts'
import { checkResource } from './schema.ts'
import { keyOf, type Store } from './store.ts'

/** The resource types of a document. Each has a version of its own. */
const TYPES = [...RESOURCES, 'plugins'] as const

/** The result of a PUT. `same`: the digest equals the stored one, and the body was not read. */
type Taken =
  | { readonly kind: 'stored' }
  | { readonly kind: 'same' }
  | { readonly kind: 'refused'; readonly problem: string }

/** The whole configuration of one gateway in API-driven standalone mode: it exists only in this gateway's memory. */
export interface Document {
  readonly digest: string | undefined
  /** Seconds since the epoch. */
  readonly lastModified: number
  /** The document as a GET shows it. */
  shown(): JsonObject
  put(digest: string, body: JsonObject): Taken
}

/**
 * Keeps a document, and writes its changes to `store`, which the gateway's workers follow. The rules are those of
 * apisix/admin/standalone.lua, as recorded in test/recordings/admin-api-standalone.json.
 */
export function createDocument(store: Store): Document {
  const versions = new Map<string, number>(TYPES.map(type => [type, 0]))
  const items = new Map<string, readonly JsonObject[]>()
  let digest: string | undefined
  let lastModified = 0

  const take = (type: string, body: JsonObject): void => {
    const current = versions.get(type) ?? 0
    const given = body[`${type}_conf_version`]
    const version = typeof given === 'number' ? given : current + 1
    // The same version means the same content, whatever the body has. With a new version, a type that the body lacks is emptied.
    if (version === current) return
    versions.set(type, version)
    const sent = body[type]
    if (Array.isArray(sent)) items.set(type, sent.filter(isObject))
    else items.delete(type)
    apply(type)
  }
  /** A worker replaces an item only if its `modifiedIndex` differs (config_yaml.lua:339). */
  const apply = (type: string): void => {
    const wanted = items.get(type) ?? []
    const ids = new Set(wanted.map(({ id }) => asText(id)))
    for (const { key, value } of store.list(type)) if (!ids.has(asText(value['id']))) store.delete(key)
    for (const item of wanted) {
      const key = keyOf(type, asText(item['id']))
      const known = store.get(key)
      if (known && known.value['modifiedIndex'] === item['modifiedIndex']) continue
      store.put(key, item)
    }
  }
  return {
    get digest() {
      return digest
    },
    get lastModified() {
      return lastModified
    },
    shown: () => ({
      ...Object.fromEntries([...items].map(([type, list]) => [type, [...list]])),
      ...Object.fromEntries([...versions].map(([type, version]) => [`${type}_conf_version`, version])),
      ...(digest !== undefined && { 'X-Digest': digest, 'X-Last-Modified': lastModified })
    }),
    put(given, body) {
      if (given === digest) return { kind: 'same' }
      const problem = problemOf(body, versions)
      if (problem !== undefined) return { kind: 'refused', problem }
      for (const type of TYPES) take(type, body)
      digest = given
      lastModified = Math.floor(Date.now() / 1000)
      return { kind: 'stored' }
    }
  }
}

function problemOf(body: JsonObject, versions: ReadonlyMap<string, number>): string | undefined {
  for (const [type, current] of versions) {
    const given = body[`${type}_conf_version`]
    if (given === undefined) continue
    if (typeof given !== 'number') return `${type}_conf_version must be a number`
    if (given < current) return `${type}_conf_version must be greater than or equal to (${current})`
  }
  for (const type of TYPES) {
    const problem = itemsProblem(type, body[type])
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Finds any object: an object may name one that the document lacks, so only its own fields are checked. */
const ANYTHING: Pick<Store, 'get'> = {
  get: key => ({ key, value: {}, createdIndex: 0, modifiedIndex: 0 })
}

function itemsProblem(type: string, list: Json | undefined): string | undefined {
  const ids = new Set<string>()
  for (const item of Array.isArray(list) ? list.filter(isObject) : []) {
    const { modifiedIndex: _, ...fields } = item
    const verdict = checkResource(type, fields, ANYTHING)
    if (verdict.kind === 'invalid') return verdict.problem
    const [name, id] =
      type === 'consumers' ? ['username', asText(item['username'])] : ['id', asText(item['id'])]
    if (id !== '' && ids.has(id)) return `found duplicate ${name} ${id} in ${type}`
    ids.add(id)
  }
  return undefined
}
