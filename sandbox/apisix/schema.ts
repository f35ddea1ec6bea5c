import { isIPv6 } from 'node:net'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { keyOf, type Store } from './store.ts'

/** `crash`: APISIX's own check fails with a Lua error, and nginx answers its 500 page. */
export type Verdict =
  | { readonly kind: 'ok' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'crash' }

const ok: Verdict = { kind: 'ok' }
const invalid = (problem: string): Verdict => ({ kind: 'invalid', problem })

const MATCHES_NONE = 'object matches none of the required'
const ONE_OF = 'value should match only one schema, but matches none'

/**
 * Checks an object before it is stored. The messages are APISIX's own, if they were recorded (test/recordings) or are in its
 * tests. Finds only mistakes about nodes that an agent, or a user of the sandbox, can make. Unknown fields pass.
 */
export function checkResource(resource: string, value: JsonObject, store: Store): Verdict {
  return firstProblem([
    () => prefixed('invalid configuration: ', checkSchema(resource, value)),
    () => checkTrafficSplit(value),
    () => checkReferences(value, store)
  ])
}

const checkSchema = (resource: string, value: JsonObject): Verdict => {
  if (resource === 'upstreams') return checkUpstream(value)
  const uri = resource === 'routes' ? checkRouteUri(value) : ok
  if (uri.kind !== 'ok' || !isObject(value['upstream'])) return uri
  return prefixed('property "upstream" validation failed: ', checkUpstream(value['upstream']))
}

export function checkUpstream(upstream: JsonObject): Verdict {
  const { nodes } = upstream
  const discovered = upstream['service_name'] !== undefined && upstream['discovery_type'] !== undefined
  if (nodes === undefined) return discovered ? ok : invalid(ONE_OF)
  if (Array.isArray(nodes)) {
    if (!nodes.every(isArrayNode)) return invalid(`property "nodes" validation failed: ${MATCHES_NONE}`)
    return nodes.some(node => isObject(node) && isIPv6(asText(node['host'])))
      ? invalid("IPv6 address must be enclosed with '[' and ']'")
      : ok
  }
  if (!isObject(nodes)) return { kind: 'crash' }
  return Object.values(nodes).every(isWeight)
    ? ok
    : invalid(`property "nodes" validation failed: ${MATCHES_NONE}`)
}

const isWeight = (value: Json | undefined): boolean => Number.isInteger(value) && Number(value) >= 0

const isArrayNode = (node: Json): boolean => {
  if (!isObject(node)) return false
  const { host, port, weight, priority } = node
  const portFits =
    port === undefined || (Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65535)
  const priorityFits = priority === undefined || Number.isInteger(priority)
  return typeof host === 'string' && host !== '' && isWeight(weight) && portFits && priorityFits
}

const checkRouteUri = (route: JsonObject): Verdict =>
  route['uri'] === undefined && route['uris'] === undefined ? invalid(`allOf 1 failed: ${ONE_OF}`) : ok

/** Every inline upstream of a traffic-split plugin, in the order of its rules. */
export function splitUpstreams(value: JsonObject): JsonObject[] {
  const plugins = value['plugins']
  const split = isObject(plugins) ? plugins['traffic-split'] : undefined
  const rules = isObject(split) && Array.isArray(split['rules']) ? split['rules'] : []
  return rules.flatMap(rule => {
    const weighted = isObject(rule) ? rule['weighted_upstreams'] : undefined
    return Array.isArray(weighted) ? weighted.filter(isObject) : []
  })
}

const checkTrafficSplit = (value: JsonObject): Verdict => {
  for (const { upstream } of splitUpstreams(value)) {
    const verdict = isObject(upstream) ? checkUpstream(upstream) : ok
    if (verdict.kind !== 'ok')
      return prefixed('failed to check the configuration of plugin traffic-split err: ', verdict)
  }
  return ok
}

/** A route may not name an upstream or a service that does not exist. */
const checkReferences = (value: JsonObject, store: Store): Verdict => {
  for (const kind of ['upstream', 'service']) {
    const id = value[`${kind}_id`]
    if (id === undefined || store.get(keyOf(`${kind}s`, asText(id)))) continue
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

const prefixed = (prefix: string, verdict: Verdict): Verdict =>
  verdict.kind === 'invalid' ? invalid(prefix + verdict.problem) : verdict
