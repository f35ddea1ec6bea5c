import { isIP } from 'node:net'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { bareHost, readNodes } from './nodes.ts'
import { idOf, type Item } from './store.ts'

/** The Control API's name for one object, in paths and in its 404. */
export type ControlKind = 'upstream' | 'service' | 'route'

/**
 * An object as a worker holds it: defaults filled in, nodes always an array, inline upstreams marked with their place. In
 * standalone mode there is no etcd: no prefix, no `createdIndex`, and `modifiedIndex` is as the client sent it.
 */
export function controlView(kind: ControlKind, stored: Item, standalone = false): JsonObject {
  if (!standalone) return viewOf(kind, stored)
  const sent = stored.value['modifiedIndex']
  const modifiedIndex = typeof sent === 'number' ? sent : stored.modifiedIndex
  const view = viewOf(kind, { ...stored, key: stored.key.replace(/^\/apisix/, ''), modifiedIndex })
  delete view['createdIndex']
  return view
}

function viewOf(kind: ControlKind, item: Item): JsonObject {
  const value = kind === 'upstream' ? upstreamView(item.value, item) : objectView(kind, item)
  const holder = kind === 'upstream' ? value : value['upstream']
  return {
    key: item.key,
    createdIndex: item.createdIndex,
    modifiedIndex: item.modifiedIndex,
    has_domain: isObject(holder) && hasDomain(holder['nodes']),
    ...(kind === 'route' ? { orig_modifiedIndex: item.modifiedIndex } : {}),
    value
  }
}

const upstreamView = (upstream: JsonObject, item: Item): JsonObject => ({
  ...upstreamDefaults(upstream),
  ...(upstream['nodes'] === undefined ? {} : { nodes: nodesView(upstream['nodes']) }),
  resource_id: idOf(item.key),
  resource_key: item.key,
  resource_version: item.modifiedIndex
})

const objectView = (kind: ControlKind, item: Item): JsonObject => {
  const { upstream, plugins } = item.value
  return {
    ...(kind === 'route' ? { priority: 0, status: 1 } : {}),
    ...item.value,
    ...(isObject(upstream) ? { upstream: upstreamView(upstream, item) } : {}),
    ...(isObject(plugins) ? { plugins: pluginsView(plugins) } : {})
  }
}

const upstreamDefaults = (upstream: JsonObject): JsonObject => ({
  type: 'roundrobin',
  hash_on: 'vars',
  pass_host: 'pass',
  scheme: 'http',
  ...upstream
})

/** Only nodes that were written as an array have a priority; a missing port stays missing; an empty map stays a map. */
const nodesView = (nodes: Json): Json => {
  if (isObject(nodes) && Object.keys(nodes).length === 0) return {}
  return readNodes(nodes).map(({ host, port, weight, priority }) => ({
    host,
    weight,
    ...(port === undefined ? {} : { port }),
    ...(priority === undefined ? {} : { priority })
  }))
}

/** A plugin's inline upstreams get their defaults when the plugin's schema is checked; their nodes stay as written. */
const pluginsView = (plugins: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(plugins).map(([name, plugin]) => [
      name,
      isObject(plugin) ? { ...withUpstreamDefaults(plugin), _meta: plugin['_meta'] ?? {} } : plugin
    ])
  )

const withUpstreamDefaults = (value: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (Array.isArray(inner))
        return [name, inner.map(one => (isObject(one) ? withUpstreamDefaults(one) : one))]
      return [name, name === 'upstream' && isObject(inner) ? upstreamDefaults(inner) : inner]
    })
  )

const hasDomain = (nodes: Json | undefined): boolean =>
  Array.isArray(nodes) && nodes.some(node => isObject(node) && isIP(bareHost(asText(node['host']))) === 0)
