import { canonicalHost } from '../../base/read.ts'
import { nodeKey, type NodeKey } from '../../rules/drain/facts.ts'
import type { HolderNode } from '../../rules/plan/holder.ts'

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

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

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
  const [, host, port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(text) ?? []
  return host === undefined ? [text, undefined] : [host, Number(port)]
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
