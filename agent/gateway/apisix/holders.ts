import { crc32 } from 'node:zlib'
import type { Holder, Owner, HolderNode } from '../../rules/plan/holder.ts'
import type { AdminObject } from './admin-api.ts'
import { canonicalHost, isRecord } from '../../base/read.ts'
import { nodeKey, type NodeKey } from '../../rules/drain/facts.ts'

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
        `${base}/traffic-split/${r}/${w}`,
        ['plugins', 'traffic-split', 'rules', r, 'weighted_upstreams', w, 'upstream'],
        isRecord(entry) ? entry.upstream : undefined
      )
    )
  })
}

function found(object: AdminObject, key: string, path: Path, upstream: unknown): Holder[] {
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
      owner: ownerOf({ labels, name, id, resource }, NONE),
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

/**
 * The other writer of a holder. Controller 2.x puts the labels `manager-by` (its spelling) and `k8s/…` on services and routes; its
 * part ADC puts a label of its own on other upstreams. The upstream of a service has only a label that controller 1.8 writes too. But
 * it has the id of its service, so the service decides (`ofSecond`: the ids of services that controller 2.x wrote).
 */
export function ownerOf(
  { labels, name, id, resource }: Pick<Holder, 'labels' | 'name' | 'id' | 'resource'>,
  ofSecond: ReadonlySet<string>
): Owner {
  const isOfSecond = resource === 'upstreams' && ofSecond.has(id)
  if (isOfSecond || Object.keys(labels).some(isSecondLabel)) return 'ingress-controller-2'
  // Labels can be removed; the id of controller 1.8 is derived from the name (pkg/id/idgen.go:26).
  const hasItsId = resource === 'upstreams' && name !== undefined && id === crc32(name).toString(16)
  const isOfFirst = hasItsId || labels['managed-by'] === 'apisix-ingress-controller'
  return isOfFirst ? 'ingress-controller-1' : 'unknown'
}

/**
 * The namespace that an ingress controller made this object from; `undefined`: not known. Both controllers name objects
 * `namespace_…` (2.x: `Service_namespace_…` for a further backend) and derive the id from the name, so a tenant can choose neither.
 * Labels count only without such an id, because a tenant may set the labels of an ApisixRoute, and the content of an inline upstream.
 */
export function namespaceOf({ id, value }: Pick<AdminObject, 'id' | 'value'>): string | undefined {
  const { name, labels } = value
  if (typeof name === 'string' && id === crc32(name).toString(16)) {
    const [first, second] = name.split('_')
    return second === undefined ? undefined : first === 'Service' ? second : first
  }
  if (!isRecord(labels) || labels['manager-by'] !== 'apisix-ingress-controller') return undefined
  return typeof labels['k8s/namespace'] === 'string' ? labels['k8s/namespace'] : undefined
}

/** The ids of the services that controller 2.x wrote. */
export function servicesOfSecond(services: readonly AdminObject[]): ReadonlySet<string> {
  const ids = services.flatMap(({ id, value }) =>
    isRecord(value.labels) && Object.keys(value.labels).some(isSecondLabel) ? [id] : []
  )
  return new Set(ids)
}

const isSecondLabel = (label: string): boolean =>
  label === 'manager-by' || label === '__ADC_UPSTREAM_SERVICE_ID' || label.startsWith('k8s/')

/** Nodes as APISIX stores them: `{"10.0.0.7:8080": 1}` or `[{"host", "port", "weight", …}]`. */
export type RawNodes = Readonly<Record<string, unknown>> | readonly Readonly<Record<string, unknown>>[]

/** The nodes of one upstream, and the form of its list; `undefined` if `raw` has neither form. */
export function readNodes(
  raw: unknown
): { readonly form: 'map' | 'array'; readonly nodes: readonly HolderNode[] } | undefined {
  if (Array.isArray(raw)) return { form: 'array', nodes: raw.filter(isRecord).map(fromElement) }
  if (isRecord(raw))
    return { form: 'map', nodes: Object.entries(raw).map(([key, weight]) => fromEntry(key, weight)) }
  return undefined
}

function fromEntry(raw: string, weight: unknown): HolderNode {
  return node(...splitAddress(raw), weight, raw)
}

function fromElement(raw: Readonly<Record<string, unknown>>): HolderNode {
  const port = typeof raw.port === 'number' ? raw.port : undefined
  return node(typeof raw.host === 'string' ? raw.host : '', port, raw.weight, raw)
}

function node(host: string, port: number | undefined, weight: unknown, raw: HolderNode['raw']): HolderNode {
  const bare = canonicalHost(host)
  return { key: nodeKey(bare, port), host: bare, port, weight: typeof weight === 'number' ? weight : 1, raw }
}

/** `1.2.3.4:80`, `[::1]:80`, `[::1]`, `::1`, `shop.local`: the last colon starts the port unless it belongs to an IPv6 address. */
function splitAddress(text: string): [host: string, port: number | undefined] {
  const at = text.lastIndexOf(':')
  const [host, port] = [text.slice(0, at), text.slice(at + 1)]
  const isHost = at >= 0 && (!host.includes(':') || /^\[[^\]]*\]$/.test(host))
  return isHost && /^\d+$/.test(port) ? [host, Number(port)] : [text, undefined]
}

/** The host (without brackets) and the port of a NodeKey. */
export function addressOf(key: NodeKey): { readonly host: string; readonly port: number | undefined } {
  const [host, port] = splitAddress(key)
  return { host: canonicalHost(host), port }
}

/** An edit of the nodes of one upstream. */
export interface NodeEdit {
  readonly remove: ReadonlySet<NodeKey>
  /** Whole nodes, in the form of the other nodes. A node that is already listed is replaced. */
  readonly add: readonly HolderNode[]
  /** The edit may remove the last node: no pod is known to be left, so 503 is the right answer. */
  readonly mayEmpty?: boolean
}

/**
 * All nodes after an edit. Every node that is neither removed nor replaced has exactly the value that was read.
 * @throws RangeError if no node would be left, because APISIX would answer every request with 503 (unless the edit allows it)
 */
export function editNodes(raw: RawNodes, edit: NodeEdit): RawNodes {
  const parsed = readNodes(raw)
  const put = new Map(edit.add.map(n => [n.key, n]))
  const kept = (parsed?.nodes ?? []).filter(n => !edit.remove.has(n.key))
  const inPlace = kept.map(n => put.get(n.key) ?? n)
  for (const { key } of kept) put.delete(key)
  const all = [...inPlace, ...put.values()]
  if (all.length === 0 && !edit.mayEmpty) throw new RangeError('an edit must leave a node')
  if (parsed?.form === 'array') return all.map(n => n.raw as Readonly<Record<string, unknown>>)
  const replaced = new Set(edit.add.map(n => n.key))
  const asRead = (n: HolderNode) => (isRecord(raw) && !replaced.has(n.key) ? raw[n.raw as string] : undefined)
  return Object.fromEntries(all.map(n => [n.raw as string, asRead(n) ?? n.weight]))
}

/**
 * The edit as the value of a merge-PATCH. For a map, only the changes are sent: `null` deletes a node. An empty object, which would
 * wipe the map, is never sent. An array is sent as a whole, because APISIX replaces the whole array.
 */
export function nodesPatch(raw: RawNodes, edit: NodeEdit): RawNodes {
  const whole = editNodes(raw, edit)
  if (Array.isArray(raw)) return whole
  const removed = readNodes(raw)?.nodes.filter(n => edit.remove.has(n.key)) ?? []
  return Object.fromEntries([
    ...removed.map(n => [n.raw as string, null]),
    ...edit.add.map(n => [n.raw as string, n.weight])
  ])
}

/** A node for this address with the weight and priority of `sibling`, without its metadata. */
export function nodeOf(key: NodeKey, sibling: HolderNode, form: 'map' | 'array'): HolderNode {
  const [host, port] = splitAddress(key)
  if (form === 'map') return node(host, port, sibling.weight, key)
  const priority = typeof sibling.raw === 'string' ? undefined : sibling.raw.priority
  const raw = {
    host,
    ...(port === undefined ? {} : { port }),
    weight: sibling.weight,
    ...(priority === undefined ? {} : { priority })
  }
  return node(host, port, sibling.weight, raw)
}
