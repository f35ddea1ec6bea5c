import type { Holder } from '../../rules/plan/holder.ts'
import type { AdminObject } from './admin-api.ts'
import { isRecord, readNodes } from './nodes.ts'
import { namespaceOf, ownershipOf } from './owner.ts'

/** Schemes of upstreams that only stream routes use. */
const L4: ReadonlySet<string> = new Set(['tcp', 'tls', 'udp'])

type Path = Holder['path']
type Values = Readonly<Record<string, unknown>>

/** A single object does not show which services controller 2.x wrote. `HolderIndex` knows them, and corrects the owner. */
const NONE: ReadonlySet<string> = new Set()

/** The collections whose objects may carry an inline upstream. */
const INLINE: ReadonlySet<string> = new Set(['services', 'routes', 'stream_routes'])

/**
 * Every place in one object that lists nodes (admin/upstreams.lua of APISIX checks the same places). A reference by
 * `upstream_id` lists nothing itself: the nodes are in the upstream that it names.
 */
export function holdersOf(object: AdminObject): readonly Holder[] {
  const { resource, id, value } = object
  const base = `${resource}/${id}`
  if (resource === 'upstreams') return found(object, base, [], value)
  const inline = INLINE.has(resource) ? found(object, `${base}/upstream`, ['upstream'], value.upstream) : []
  return [...inline, ...splits(object, base)]
}

function splits(object: AdminObject, base: string): Holder[] {
  const plugins = object.value.plugins
  const split = isRecord(plugins) ? plugins['traffic-split'] : undefined
  const rules = isRecord(split) && Array.isArray(split.rules) ? split.rules : []
  return rules.flatMap((rule, r) => {
    const weighted: unknown[] =
      isRecord(rule) && Array.isArray(rule.weighted_upstreams) ? rule.weighted_upstreams : []
    return weighted.flatMap((entry, w) =>
      found(
        object,
        `${base}/plugins/traffic-split/${r}/${w}`,
        ['plugins', 'traffic-split', 'rules', r, 'weighted_upstreams', w, 'upstream'],
        isRecord(entry) ? entry.upstream : undefined
      )
    )
  })
}

export function found(object: AdminObject, key: string, path: Path, upstream: unknown): Holder[] {
  if (!isRecord(upstream)) return []
  const nodes = readNodes(upstream.nodes)
  const discovery =
    typeof upstream.discovery_type === 'string'
      ? { type: upstream.discovery_type, service: text(upstream.service_name) ?? '' }
      : undefined
  if (!nodes && !discovery) return []
  const labels = { ...strings(object.value.labels), ...strings(upstream.labels) }
  const name = text(upstream.name) ?? text(object.value.name)
  const { resource, id } = object
  const namespace = namespaceOf(object)
  return [
    {
      key,
      resource,
      id,
      path,
      form: nodes?.form ?? 'array',
      // Discovered nodes are not in the object; APISIX ignores nodes next to `discovery_type`.
      nodes: discovery ? [] : (nodes?.nodes ?? []),
      discovery,
      ...((resource === 'stream_routes' || L4.has(text(upstream.scheme) ?? '')) && { l4: true }),
      owner: ownershipOf({ labels, name, id, resource }, NONE).owner,
      ...(namespace !== undefined && { namespace }),
      labels,
      name,
      revision: object.revision
    }
  ]
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const strings = (value: unknown): Record<string, string> =>
  isRecord(value) ? Object.fromEntries(Object.entries(value as Values).map(([k, v]) => [k, String(v)])) : {}
