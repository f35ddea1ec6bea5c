import { isRecord } from '../apisix/nodes.ts'

/**
 * Merges two versions of one object. The result lists the nodes of both versions. All other fields come from the first version. `nodes`
 * is merged at every depth, because a traffic-split rule has its nodes deep inside.
 */
export function mergedNodes(first: unknown, second: unknown): unknown {
  if (Array.isArray(first) && Array.isArray(second))
    return first.map((item: unknown, i) => mergedNodes(item, second[i]))
  if (!isRecord(first) || !isRecord(second)) return first
  return Object.fromEntries(
    Object.entries(first).map(([name, value]) => [
      name,
      name === 'nodes' ? union(value, second.nodes) : mergedNodes(value, second[name])
    ])
  )
}

function union(first: unknown, second: unknown): unknown {
  if (isRecord(first) && isRecord(second)) return { ...second, ...first }
  if (!Array.isArray(first) || !Array.isArray(second)) return first
  const known = new Set(first.map(addressOf))
  return [...(first as unknown[]), ...(second as unknown[]).filter(node => !known.has(addressOf(node)))]
}

const addressOf = (node: unknown): string =>
  isRecord(node) ? `${String(node.host)} ${String(node.port)}` : ''
