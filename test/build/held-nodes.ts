import type { Item, Store } from '../../sandbox/apisix/store.ts'
import { asText, isObject, type Json, type JsonObject } from '../../sandbox/apisix/json.ts'
import { keyOf } from '../../sandbox/apisix/store.ts'
import type { TestPod } from './pods.ts'

export interface Holders {
  /** Stores an object as another writer would, straight into the stand-in's etcd. */
  put(resource: string, id: string, value: JsonObject): void
  remove(resource: string, id: string): void
  /** Stores `upstreams/<id>` with these pods, as a map by default. The first one also gets a route `/*`. */
  upstream(id: string, pods: readonly TestPod[], form?: 'map' | 'array'): void
  /** The nodes of every place that has any, sorted: `upstreams/web` -> `['10.0.0.1:80']`. */
  holders(): Readonly<Record<string, readonly string[]>>
  /** The nodes of one object, from all of its places. */
  nodes(holder: string): readonly string[]
  /** During a write: whether the test itself makes it. */
  readonly byHand: () => boolean
}

export const mapOf = (pods: readonly TestPod[]): JsonObject =>
  Object.fromEntries(pods.map(({ node }) => [node, 1]))
export const arrayOf = (pods: readonly TestPod[]): JsonObject[] =>
  pods.map(({ ip, port }) => ({ host: ip, port, weight: 1 }))

export function createHolders(store: Store): Holders {
  let byHand = false
  const hand = (write: () => void) => {
    byHand = true
    try {
      write()
    } finally {
      byHand = false
    }
  }
  const put: Holders['put'] = (resource, id, value) =>
    hand(() => void store.put(keyOf(resource, id), { id, ...value }))
  const holders: Holders['holders'] = () =>
    Object.fromEntries(
      store
        .resources()
        .flatMap(resource => store.list(resource).flatMap(item => Object.entries(nodesIn(item))))
    )
  return {
    put,
    remove: (resource, id) => hand(() => void store.delete(keyOf(resource, id))),
    upstream(id, pods, form = 'map') {
      put('upstreams', id, { type: 'roundrobin', nodes: form === 'map' ? mapOf(pods) : arrayOf(pods) })
      if (store.list('routes').length === 0) put('routes', 'all', { uri: '/*', upstream_id: id })
    },
    holders,
    nodes: holder => holders()[holder] ?? [],
    byHand: () => byHand
  }
}

/** Every `nodes` in an object, by its path. It reads the stored JSON without the agent's code, as a check on that code. */
export function nodesIn({ key, value }: Pick<Item, 'key' | 'value'>): Record<string, readonly string[]> {
  const found: Record<string, readonly string[]> = {}
  const walk = (at: string, part: Json | undefined): void => {
    if (Array.isArray(part)) part.forEach((inner, i) => walk(`${at}/${i}`, inner))
    else if (isObject(part))
      for (const [name, inner] of Object.entries(part)) {
        if (name === 'nodes') found[at] = addresses(inner)
        else walk(`${at}/${name}`, inner)
      }
  }
  walk(key.replace('/apisix/', ''), value)
  return found
}

function addresses(nodes: Json): readonly string[] {
  if (!Array.isArray(nodes)) return isObject(nodes) ? Object.keys(nodes) : []
  return nodes
    .filter(isObject)
    .map(({ host, port }) => (port === undefined ? asText(host) : `${asText(host)}:${asText(port)}`))
}
