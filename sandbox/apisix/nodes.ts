import { asText, isObject, type Json } from './json.ts'

/** A node as the gateway works with it. */
interface GatewayNode {
  /** IPv6 in brackets, as APISIX keeps it. */
  readonly host: string
  /** `undefined`: the port of the upstream's scheme. */
  readonly port: number | undefined
  readonly weight: number
  /** Nodes of a lower priority serve only when the higher ones have all been tried. */
  readonly priority: number | undefined
}

/** Reads `nodes` as an array or a map. A map has no order of its own, so its nodes are sorted by key. */
export function readNodes(nodes: Json | undefined): GatewayNode[] {
  if (Array.isArray(nodes)) return nodes.filter(isObject).map(readArrayNode)
  if (!isObject(nodes)) return []
  return Object.keys(nodes)
    .sort()
    .map(key => ({ ...splitAddress(key), weight: Number(nodes[key]), priority: undefined }))
}

const readArrayNode = (node: Record<string, Json>): GatewayNode => ({
  host: asText(node['host']),
  port: typeof node['port'] === 'number' ? node['port'] : undefined,
  weight: Number(node['weight']),
  priority: typeof node['priority'] === 'number' ? node['priority'] : 0
})

const splitAddress = (address: string): Pick<GatewayNode, 'host' | 'port'> => {
  const found = /^(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(address)?.groups
  if (!found) return { host: address, port: undefined }
  return { host: found['host'] ?? address, port: found['port'] ? Number(found['port']) : undefined }
}

/** The host without brackets, as `net.connect` and the Barrier API need it. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')
