import { crc32 } from 'node:zlib'
import { SERVICE_LABEL, type AdcObjects } from './adc-target.ts'
import type { OwnedService } from './owner.ts'
import type { UpstreamNode } from './slices.ts'

/** A backend of a rule. `weight` applies to its nodes, and to its share in the rule. Default 1, as in the Gateway API. */
export interface Backend extends OwnedService {
  readonly weight?: number
}

/** A rule of an HTTPRoute. The sandbox names the route after the rule's first backend. */
export interface OwnedRule extends Backend {
  readonly others?: readonly Backend[]
}

/** The nodes that a sync has read for the backends of one rule, in the order of the rule. */
export type RuleNodes = readonly { readonly backend: Backend; readonly nodes: readonly UpstreamNode[] }[]

/** `<namespace>_<route>_<rule>` (httproute.go:703), the id of both the service and the upstream of its first backend. */
const ruleName = ({ namespace, name }: OwnedService): string => `${namespace}_${name}_0`
/** `ComposeUpstreamNameForBackendRef`: the name of each further upstream. */
const backendName = ({ namespace, name, port }: OwnedService): string =>
  `Service_${namespace}_${name}_${port}`

const idOf = (name: string): string => crc32(name).toString(16)

/** A route's name adds the number of the match in its rule, and its id follows from that name. */
export const adcRouteId = (rule: OwnedService): string => idOf(`${ruleName(rule)}-0`)

/** The id of the upstream of a second or later backend. */
export const adcBackendId = (backend: OwnedService): string => idOf(backendName(backend))

/** Weight of a Gateway API or Ingress backend (httproute.go:418). */
export const weightOf = ({ weight = 1 }: Backend): number => weight

/** The objects of all rules. Each rule makes one service, one route, and an upstream for each backend with nodes. */
export function adcObjects(rules: readonly RuleNodes[]): AdcObjects {
  const made = rules.map(ruleObjects)
  return {
    upstreams: made.flatMap(({ upstreams }) => upstreams),
    services: made.flatMap(({ services }) => services),
    routes: made.flatMap(({ routes }) => routes)
  }
}

/**
 * `translateBackendsToUpstreams` (httproute.go) leaves out backends without nodes. The first backend that remains is the
 * upstream of the service, and `traffic-split` leads to the others. Weights are taken by position in the whole rule, so after
 * a backend that was left out, a backend gets the weight of another one.
 */
function ruleObjects(rule: RuleNodes): AdcObjects {
  const [named] = rule
  if (!named) return { upstreams: [], services: [], routes: [] }
  const name = ruleName(named.backend)
  const id = idOf(name)
  const labels = {
    'k8s/kind': 'HTTPRoute',
    'k8s/namespace': named.backend.namespace,
    'k8s/name': named.backend.name,
    'manager-by': 'apisix-ingress-controller'
  }
  const [first, ...others] = rule.filter(({ nodes }) => nodes.length > 0)
  const weights = rule.map(({ backend }) => weightOf(backend))
  const more = others.map(({ backend, nodes }) => ({
    ...upstream(backendName(backend), nodes, { [SERVICE_LABEL]: id }),
    id: adcBackendId(backend)
  }))
  const split = [
    { weight: weights[0] },
    ...more.map((one, i) => ({ upstream_id: one.id, weight: weights[i + 1] }))
  ]
  const plugins = { 'traffic-split': { rules: [{ weighted_upstreams: split }] } }
  return {
    upstreams: [{ ...upstream(name, first?.nodes ?? []), id }, ...more],
    services: [{ id, name, labels, upstream_id: id, ...(more.length > 0 && { plugins }) }],
    routes: [{ id: adcRouteId(named.backend), name: `${name}-0`, labels, uris: ['/*'], service_id: id }]
  }
}

const upstream = (name: string, nodes: readonly UpstreamNode[], labels: Record<string, string> = {}) => ({
  name,
  labels: { 'managed-by': 'apisix-ingress-controller', ...labels },
  type: 'roundrobin',
  nodes
})
