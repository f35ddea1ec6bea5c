import type { JsonObject } from './json.ts'

/** One object as etcd holds it. Never changed in place: a write stores a new one. */
export interface Item {
  /** `/apisix/<resource>/<id>` */
  readonly key: string
  readonly value: JsonObject
  /** The revision that created it. */
  readonly createdIndex: number
  /** The revision that last wrote it (etcd's mod_revision). */
  readonly modifiedIndex: number
}

export type StoreEvent =
  | { readonly kind: 'put'; readonly revision: number; readonly item: Item }
  | { readonly kind: 'delete'; readonly revision: number; readonly key: string }

/** `down` answers an error at once; `black-holed` never answers, like a dropped route to etcd. */
export type StoreHealth = 'up' | 'down' | 'black-holed'

export interface PutOptions {
  /** Write only if the object is still at this revision. */
  readonly expected?: number
  /** The object vanishes after this many seconds (an etcd lease). */
  readonly ttlSeconds?: number
}

/** Takes the part of etcd for APISIX: one ordered history of writes that several gateways follow. */
export interface Store {
  /** The revision of the last write. */
  readonly revision: number
  health: StoreHealth
  get(key: string): Item | undefined
  /** All objects under `/apisix/<resource>/`, sorted by key, as an etcd range read returns them. */
  list(resource: string): Item[]
  /** The names of the resources that have objects. */
  resources(): string[]
  /** `undefined`, without a write, if the object is no longer at revision `expected`. */
  put(key: string, value: JsonObject, options?: PutOptions): Item | undefined
  /** False, without a new revision, if there is no such object. */
  delete(key: string): boolean
  /** A new id: APISIX writes a counter key and takes its revision, 20 digits wide. */
  generateId(): string
  /** Calls `listener` for each write, before the write returns. Returns the function that removes the listener. */
  watch(listener: (event: StoreEvent) => void): () => void
  /** Drops leases and listeners. */
  close(): void
}

export const keyOf = (resource: string, id: string): string => `/apisix/${resource}/${id}`

export const idOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1)

export const resourceOf = (key: string): string => key.split('/')[2] ?? ''

/** @param options.revision the start of the history: the first write gets the next number. */
export function createStore({ revision = 0 }: { revision?: number } = {}): Store {
  const items = new Map<string, Item>()
  const leases = new Map<string, NodeJS.Timeout>()
  const listeners = new Set<(event: StoreEvent) => void>()
  let current = revision

  const tell = (event: StoreEvent): void => {
    for (const listener of listeners) listener(event)
  }
  const endLease = (key: string): void => {
    clearTimeout(leases.get(key))
    leases.delete(key)
  }
  const store: Store = {
    get revision() {
      return current
    },
    health: 'up',
    get: key => items.get(key),
    list: resource => {
      const prefix = keyOf(resource, '')
      const found = [...items.values()].filter(item => item.key.startsWith(prefix))
      return found.sort((a, b) => (a.key < b.key ? -1 : 1))
    },
    resources: () => [...new Set([...items.keys()].map(resourceOf))],
    put: (key, value, { expected, ttlSeconds } = {}) => {
      const old = items.get(key)
      if (expected !== undefined && old?.modifiedIndex !== expected) return undefined
      current += 1
      const item = { key, value, createdIndex: old?.createdIndex ?? current, modifiedIndex: current }
      items.set(key, item)
      endLease(key)
      if (ttlSeconds !== undefined) {
        const lease = setTimeout(() => store.delete(key), ttlSeconds * 1000)
        lease.unref()
        leases.set(key, lease)
      }
      tell({ kind: 'put', revision: current, item })
      return item
    },
    delete: key => {
      if (!items.delete(key)) return false
      endLease(key)
      current += 1
      tell({ kind: 'delete', revision: current, key })
      return true
    },
    generateId: () => {
      current += 1
      return String(current).padStart(20, '0')
    },
    watch: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => {
      for (const key of leases.keys()) endLease(key)
      listeners.clear()
    }
  }
  return store
}
