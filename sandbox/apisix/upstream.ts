import { createBalancer, type Balancer, type Target } from './balancer.ts'
import { canonicalIp } from './ip.ts'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { bareHost, readNodes } from './nodes.ts'

/** An upstream as one worker runs it. */
export interface Upstream {
  readonly targets: readonly Target[]
  readonly balancer: Balancer
  /** The number of tries after the first one. */
  readonly retries: number
  /** The number of retries follows from the number of nodes. */
  readonly derivesRetries: boolean
  readonly connectTimeoutMs: number
  readonly readTimeoutMs: number
}

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, grpc: 80, grpcs: 443 }

/** nginx's defaults as APISIX ships them. */
const DEFAULT_TIMEOUT_SECONDS = 60

export function createUpstream(value: JsonObject, routeTimeout: Json | undefined): Upstream {
  const port = PORTS[asText(value['scheme']) || 'http'] ?? 80
  const targets = readNodes(value['nodes']).map(node => {
    const host = canonicalIp(bareHost(node.host)) ?? node.host
    const at = node.port ?? port
    return {
      host,
      port: at,
      name: host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`,
      weight: node.weight,
      priority: node.priority ?? 0
    }
  })
  const { retries, timeout } = value
  const isGiven = typeof retries === 'number' && retries >= 0
  const timeouts = isObject(routeTimeout) ? routeTimeout : isObject(timeout) ? timeout : {}
  const milliseconds = (name: string): number =>
    1000 * (typeof timeouts[name] === 'number' ? timeouts[name] : DEFAULT_TIMEOUT_SECONDS)
  return {
    targets,
    balancer: createBalancer(asText(value['type'])),
    retries: isGiven ? retries : Math.max(targets.length - 1, 0),
    derivesRetries: !isGiven,
    connectTimeoutMs: milliseconds('connect'),
    readTimeoutMs: milliseconds('read')
  }
}
