import type { JsonObject } from './json.ts'

/** The nodes of one Service, by the name of the port. */
export type DiscoveredPorts = Readonly<Record<string, readonly JsonObject[]>>

/**
 * The shared dictionary of APISIX's `discovery.kubernetes`: all workers of a gateway share it, and read it for every
 * request (apisix/discovery/kubernetes/core.lua).
 */
export interface Discovery {
  /** `service`: `namespace/name`. */
  set(service: string, ports: DiscoveredPorts): void
  /** Sets the nodes that another registry (`nacos`, `consul`, `eureka`, `dns`) lists for a service; each type has its own cache. */
  register(type: string, service: string, nodes: readonly JsonObject[]): void
  /** Whether this type is configured: `kubernetes` always is, another type if something is registered for it. */
  has(type: string): boolean
  /** `service` as in an upstream's `service_name`; for `kubernetes`, `namespace/name:port`. The same array until the nodes change. */
  nodes(type: string, service: string): readonly JsonObject[]
}

const NONE: readonly JsonObject[] = []

export function createDiscovery(): Discovery {
  const services = new Map<string, DiscoveredPorts>()
  const registered = new Map<string, readonly JsonObject[]>()
  return {
    set: (service, ports) => void services.set(service, ports),
    register: (type, service, nodes) => void registered.set(`${type} ${service}`, nodes),
    has: type => type === 'kubernetes' || [...registered.keys()].some(key => key.startsWith(`${type} `)),
    nodes(type, name) {
      if (type !== 'kubernetes') return registered.get(`${type} ${name}`) ?? NONE
      const end = name.lastIndexOf(':')
      return services.get(name.slice(0, end))?.[name.slice(end + 1)] ?? NONE
    }
  }
}
