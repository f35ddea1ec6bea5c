import type { IncomingMessage } from 'node:http'
import type { ConfigView } from './config-view.ts'
import { asText, isObject, type Json, type JsonObject } from './json.ts'

/** The object that an upstream is part of. With `rule` and `choice`, counted from 1: the upstream is written into its traffic-split. */
export interface Place {
  readonly kind: string
  readonly id: string
  readonly rule?: number
  readonly choice?: number
}

export interface Timeouts {
  readonly connectMs: number
  readonly readMs: number
}

/** nginx's defaults as APISIX ships them. */
const DEFAULT_TIMEOUT_SECONDS = 60

/** The destination of a request, in one worker's configuration. */
export type Destination =
  | { readonly kind: 'upstream'; readonly place: Place; readonly timeouts: Timeouts }
  /** No route: APISIX's own 404. */
  | { readonly kind: 'no-route' }
  /** The route has no upstream at all. */
  | { readonly kind: 'no-upstream' }
  /** The route names an upstream that is gone (deleted with `force`). */
  | { readonly kind: 'upstream-gone' }

export interface Router {
  /** By the request's method, path and Host. */
  find(request: IncomingMessage): Destination
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
 */
export function createRouter(config: ConfigView): Router {
  let compiledAt = -1
  let rules: Rule[] = []
  // Keyed by the stored object. A write replaces that object, so the turns start anew, as in APISIX.
  const splits = new WeakMap<JsonObject, Turns>()

  const destination = ({ id: route, value: own }: Rule): Destination => {
    const serviceId = asText(own['service_id'])
    const service = config.get('services', serviceId)?.value ?? {}
    const holders: readonly Place[] = [
      { kind: 'routes', id: route },
      { kind: 'services', id: serviceId }
    ]
    const sources = [
      ...[own, service].map((value, i) => splitChoice(value['plugins'], splits, holders[i] as Place)),
      { value: own, place: holders[0] as Place },
      { value: service, place: holders[1] as Place }
    ]
    const source = sources.find(one => one && hasUpstream(one.value))
    if (!source) return { kind: 'no-upstream' }
    const inline = source.value['upstream']
    const id = asText(source.value['upstream_id'])
    const value = isObject(inline) ? inline : config.get('upstreams', id)?.value
    const place = isObject(inline) ? source.place : { kind: 'upstreams', id }
    return value
      ? { kind: 'upstream', place, timeouts: timeoutsOf(value, own['timeout']) }
      : { kind: 'upstream-gone' }
  }
  return {
    find: ({ method = 'GET', url = '/', headers }) => {
      const [path = '/'] = url.split('?', 1)
      const host = (headers.host ?? '').replace(/:\d+$/, '')
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

/** Returns the next index into the weights, without end. */
type Turns = () => number

/** Weighted round robin. It begins anywhere, or all workers would send their first request to the same upstream. */
function turnsOf(weights: readonly number[]): Turns {
  const step = weights.reduce(gcd, 0) || 1
  const ring = weights.flatMap((weight, i) => Array.from({ length: weight / step }, () => i))
  let at = Math.floor(Math.random() * ring.length)
  return () => ring[(at = (at + 1) % ring.length)] ?? 0
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))

/** The weighted upstream whose turn it is. Rules with a `match` are skipped: the stand-in evaluates no variables. */
const splitChoice = (
  plugins: Json | undefined,
  turns: WeakMap<JsonObject, Turns>,
  holder: Place
): { readonly value: JsonObject; readonly place: Place } | undefined => {
  const split = isObject(plugins) ? plugins['traffic-split'] : undefined
  const rules = isObject(split) && Array.isArray(split['rules']) ? split['rules'] : []
  const at = rules.findIndex(one => isObject(one) && one['match'] === undefined)
  const rule = rules[at]
  const weighted =
    isObject(rule) && Array.isArray(rule['weighted_upstreams']) ? rule['weighted_upstreams'] : []
  const choices = weighted.filter(isObject)
  if (!isObject(rule) || choices.length === 0) return undefined
  const turn = turns.get(rule) ?? turnsOf(choices.map(({ weight }) => Number(weight ?? 1)))
  turns.set(rule, turn)
  const choice = turn()
  const value = choices[choice]
  return value && { value, place: { ...holder, rule: at + 1, choice: choice + 1 } }
}

const timeoutsOf = ({ timeout }: JsonObject, ofRoute: Json | undefined): Timeouts => {
  const given = isObject(ofRoute) ? ofRoute : isObject(timeout) ? timeout : {}
  const milliseconds = (name: string): number =>
    1000 * (typeof given[name] === 'number' ? given[name] : DEFAULT_TIMEOUT_SECONDS)
  return { connectMs: milliseconds('connect'), readMs: milliseconds('read') }
}
