import type { ConfigView } from './config-view.ts'
import type { Discovery } from './discovery.ts'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { readNodes } from './nodes.ts'
import type { Names } from './places.ts'
import { createRoundRobin, type RoundRobin } from './round-robin.ts'
import { createUpstream, type Upstream } from './upstream.ts'

/** The destination of a request, in one worker's configuration. */
export type Destination =
  | { readonly kind: 'upstream'; readonly route: string; readonly upstream: Upstream }
  /** No route: APISIX's own 404. */
  | { readonly kind: 'no-route' }
  /** The route has no upstream at all. */
  | { readonly kind: 'no-upstream'; readonly route: string }
  /** The route names an upstream that is gone (deleted with `force`). */
  | { readonly kind: 'upstream-gone'; readonly route: string }

export interface Router {
  /** `host` without port. */
  find(method: string, path: string, host: string): Destination
}

interface Rule {
  readonly id: string
  readonly path: string
  readonly prefix: boolean
  readonly priority: number
  readonly value: JsonObject
}

/**
 * Finds routes as APISIX's radixtree does: an exact path before any prefix, the longest prefix first, `priority` between
 * routes of the same path. Only `methods` and `host(s)` narrow a route; `vars` and filter functions are ignored.
 * @param discovery the source of nodes for upstreams with a `discovery_type`
 * @param names the addresses of node names; this machine's resolver handles a name that is missing here
 */
export function createRouter(config: ConfigView, discovery?: Discovery, names?: Names): Router {
  let compiledAt = -1
  let rules: Rule[] = []
  // Keyed by the stored object. A write replaces that object, so the turns start anew, as in APISIX.
  const upstreams = new WeakMap<JsonObject, Upstream>()
  const splits = new WeakMap<JsonObject, RoundRobin>()

  const byRecords = new WeakMap<JsonObject, Map<string, Upstream>>()
  let turn = 0
  const discovered = new WeakMap<JsonObject, { readonly nodes: unknown; readonly upstream: Upstream }>()

  const upstreamOf = (value: JsonObject, route: JsonObject): Upstream => {
    const type = asText(value['discovery_type'])
    if (discovery?.has(type)) {
      const nodes = discovery.nodes(type, asText(value['service_name']))
      const last = discovered.get(value)
      if (last?.nodes === nodes) return last.upstream
      const upstream = createUpstream({ ...value, nodes: [...nodes] }, route['timeout'])
      discovered.set(value, { nodes, upstream })
      return upstream
    }
    if (names && readNodes(value['nodes']).some(({ host }) => names.has(host)))
      return resolved(value, route, names)
    const known = upstreams.get(value)
    if (known) return known
    const made = createUpstream(value, route['timeout'])
    upstreams.set(value, made)
    return made
  }
  /** As in APISIX, each request gets one record of a name (apisix/utils/upstream.lua, parse_domain_for_nodes). */
  const resolved = (value: JsonObject, route: JsonObject, names: Names): Upstream => {
    const nodes = readNodes(value['nodes']).map(({ host, port, weight, priority }) => ({
      records: names.get(host) ?? [host],
      rest: { weight, priority: priority ?? 0, ...(port !== undefined && { port }) }
    }))
    const first = turn++
    const drawn = nodes.map(({ records }) => records[first % records.length] ?? '')
    const made = byRecords.get(value) ?? new Map<string, Upstream>()
    byRecords.set(value, made)
    const key = JSON.stringify([nodes.map(({ records }) => records), drawn])
    const known = made.get(key)
    if (known) return known
    const of = (hosts: readonly string[]): Upstream =>
      createUpstream(
        { ...value, nodes: hosts.map((host, i) => ({ host, ...nodes[i]?.rest })) },
        route['timeout']
      )
    const upstream = of(drawn)
    const targets = upstream.targets.map((target, i) => ({
      ...target,
      siblings: (nodes[i]?.records ?? [])
        .filter(record => record !== drawn[i])
        .flatMap(record => of(drawn.with(i, record)).targets[i] ?? [])
    }))
    const whole = { ...upstream, targets }
    made.set(key, whole)
    return whole
  }
  const destination = (rule: Rule): Destination => {
    const service = config.get('services', asText(rule.value['service_id']))?.value ?? {}
    const split = splitChoice(rule.value['plugins'], splits) ?? splitChoice(service['plugins'], splits)
    const source = [split, rule.value, service].find(one => one && hasUpstream(one))
    if (!source) return { kind: 'no-upstream', route: rule.id }
    const inline = source['upstream']
    const value = isObject(inline) ? inline : config.get('upstreams', asText(source['upstream_id']))?.value
    return value
      ? { kind: 'upstream', route: rule.id, upstream: upstreamOf(value, rule.value) }
      : { kind: 'upstream-gone', route: rule.id }
  }
  return {
    find: (method, path, host) => {
      if (compiledAt !== config.revision) {
        rules = compile(config)
        compiledAt = config.revision
      }
      const rule = rules.find(
        one => (one.prefix ? path.startsWith(one.path) : path === one.path) && admits(one.value, method, host)
      )
      return rule ? destination(rule) : { kind: 'no-route' }
    }
  }
}

const hasUpstream = (value: JsonObject): boolean =>
  isObject(value['upstream']) || value['upstream_id'] !== undefined

const compile = (config: ConfigView): Rule[] => {
  const rules = config.list('routes').flatMap(({ value }) => {
    if (value['status'] === 0) return []
    const uris = Array.isArray(value['uris']) ? value['uris'] : [value['uri']]
    return uris.map(asText).map(uri => ({
      id: asText(value['id']),
      path: uri.replace(/\*$/, ''),
      prefix: uri.endsWith('*'),
      priority: Number(value['priority'] ?? 0),
      value
    }))
  })
  return rules.sort(
    (a, b) => Number(a.prefix) - Number(b.prefix) || b.path.length - a.path.length || b.priority - a.priority
  )
}

const admits = (route: JsonObject, method: string, host: string): boolean => {
  const { methods, hosts } = route
  if (Array.isArray(methods) && methods.length > 0 && !methods.includes(method)) return false
  const names = Array.isArray(hosts) ? hosts : route['host'] === undefined ? [] : [route['host']]
  return names.length === 0 || names.some(name => hostFits(asText(name), host))
}

const hostFits = (name: string, host: string): boolean =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : name === host

/** The weighted upstream whose turn it is. Rules with a `match` are skipped: the stand-in evaluates no variables. */
const splitChoice = (
  plugins: Json | undefined,
  turns: WeakMap<JsonObject, RoundRobin>
): JsonObject | undefined => {
  const split = isObject(plugins) ? plugins['traffic-split'] : undefined
  const rules = isObject(split) && Array.isArray(split['rules']) ? split['rules'] : []
  const rule = rules.filter(isObject).find(one => one['match'] === undefined)
  const weighted = rule && Array.isArray(rule['weighted_upstreams']) ? rule['weighted_upstreams'] : []
  const choices = weighted.filter(isObject)
  if (!rule || choices.length === 0) return undefined
  const turn = turns.get(rule) ?? createRoundRobin(choices.map(({ weight }) => Number(weight ?? 1)))
  turns.set(rule, turn)
  return choices[turn()]
}
