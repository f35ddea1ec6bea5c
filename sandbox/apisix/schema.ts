import { isIPv6 } from 'node:net'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { SHAPES, TRAFFIC_SPLIT } from './shapes.ts'
import { keyOf, type Store } from './store.ts'
import { HASH_KEYS, UPSTREAM } from './upstream-shape.ts'
import { problemOf, type Schema } from './validate.ts'

/** `crash`: APISIX's own check fails with a Lua error, and nginx answers its 500 page. */
type Verdict =
  | { readonly kind: 'ok' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'crash' }

const ok: Verdict = { kind: 'ok' }
const invalid = (problem: string): Verdict => ({ kind: 'invalid', problem })
/** Finds the objects that another one names by id. */
type References = Pick<Store, 'get'>

/**
 * Checks an object before it is stored, in APISIX's own words. The expressions and the Lua of a route (`vars`, `filter_func`,
 * `script`) and the settings of plugins are not checked, except those of traffic-split.
 */
export function checkResource(resource: string, value: JsonObject, store: References): Verdict {
  if (resource === 'upstreams') return checkUpstream(value)
  const { upstream } = value
  return firstProblem([
    () => (resource === 'routes' ? checkPairs(value) : ok),
    () => bySchema(SHAPES[resource], value),
    () => (isObject(upstream) ? checkUpstream(upstream) : ok),
    () => checkReferences(value, store),
    () => checkTrafficSplit(value)
  ])
}

/** Checks an upstream, inline or not. */
function checkUpstream(upstream: JsonObject): Verdict {
  const { nodes } = upstream
  if (nodes !== undefined && (nodes === null || typeof nodes !== 'object')) return { kind: 'crash' }
  if (Array.isArray(nodes) && nodes.some(node => isObject(node) && isIPv6(asText(node['host']))))
    return invalid("invalid configuration: IPv6 address must be enclosed with '[' and ']'")
  return firstProblem([
    () => bySchema(UPSTREAM, upstream),
    () => checkPorts(nodes),
    () => checkHost(upstream),
    () => checkHash(upstream)
  ])
}

const bySchema = (schema: Schema | undefined, value: Json): Verdict => {
  const problem = schema && problemOf(schema, value)
  return problem === undefined ? ok : invalid(`invalid configuration: ${problem}`)
}

const checkPorts = (nodes: Json | undefined): Verdict => {
  const addresses = isObject(nodes) ? Object.keys(nodes) : []
  const ports = addresses.map(address => /^(?:\[.*\]|[^:]*):(\d+)$/.exec(address)?.[1])
  const wrong = ports.map(Number).find(port => port < 1 || port > 65535)
  return wrong === undefined ? ok : invalid(`invalid port ${wrong}`)
}

const checkHost = (upstream: JsonObject): Verdict =>
  upstream['pass_host'] === 'rewrite' && asText(upstream['upstream_host']) === ''
    ? invalid("`upstream_host` can't be empty when `pass_host` is `rewrite`")
    : ok

const checkHash = ({ type, hash_on: hashOn, key }: JsonObject): Verdict => {
  if (type !== 'chash' || hashOn === 'consumer') return ok
  if (key === undefined) return invalid('missing key')
  return bySchema(HASH_KEYS[hashOn === undefined ? 'vars' : asText(hashOn)], key)
}

/** Refuses a field together with its plural. It runs before the schema, whose message would be less clear. */
const checkPairs = (route: JsonObject): Verdict => {
  for (const [one, several] of [
    ['host', 'hosts'],
    ['remote_addr', 'remote_addrs']
  ] as const)
    if (route[one] !== undefined && route[several] !== undefined)
      return invalid(`only one of ${one} or ${several} is allowed`)
  return ok
}

const trafficSplitOf = (value: JsonObject): Json | undefined =>
  isObject(value['plugins']) ? value['plugins']['traffic-split'] : undefined

/** Every inline upstream of a traffic-split plugin, in the order of its rules. */
export function splitUpstreams(value: JsonObject): JsonObject[] {
  const split = trafficSplitOf(value)
  const rules = isObject(split) && Array.isArray(split['rules']) ? split['rules'] : []
  return rules.flatMap(rule => {
    const weighted = isObject(rule) ? rule['weighted_upstreams'] : undefined
    return Array.isArray(weighted) ? weighted.filter(isObject) : []
  })
}

const checkTrafficSplit = (value: JsonObject): Verdict => {
  const split = trafficSplitOf(value)
  const problem = split === undefined ? undefined : problemOf(TRAFFIC_SPLIT, split)
  return problem === undefined
    ? ok
    : invalid(`failed to check the configuration of plugin traffic-split err: ${problem}`)
}

/** Refuses an object that names another object if that one does not exist. */
const checkReferences = (value: JsonObject, store: References): Verdict => {
  for (const [field, resource, kind] of [
    ['upstream_id', 'upstreams', 'upstream'],
    ['service_id', 'services', 'service'],
    ['plugin_config_id', 'plugin_configs', 'plugin config']
  ] as const) {
    const id = value[field]
    if (id === undefined || store.get(keyOf(resource, asText(id)))) continue
    return invalid(`failed to fetch ${kind} info by ${kind} id [${asText(id)}], response code: 404`)
  }
  return ok
}

const firstProblem = (checks: readonly (() => Verdict)[]): Verdict => {
  for (const check of checks) {
    const verdict = check()
    if (verdict.kind !== 'ok') return verdict
  }
  return ok
}
