import type { Json, JsonObject } from './json.ts'

/** The nodes of one Service, by the name of the port. */
export type DiscoveredPorts = Readonly<Record<string, readonly JsonObject[]>>

/**
 * What APISIX's `discovery.kubernetes` keeps in its shared dictionary: one for all workers of a gateway, which look into it
 * at every request (apisix/discovery/kubernetes/core.lua).
 */
export interface Discovery {
  /** `service`: `namespace/name`. */
  set(service: string, ports: DiscoveredPorts): void
  /** `name`: `namespace/name:port`, as in an upstream's `service_name`. The same array until they change. */
  nodes(name: string): readonly JsonObject[]
  /** As `GET /v1/discovery/kubernetes/dump` shows it with one cluster: the values are JSON in a string. */
  dump(): JsonObject
}

const NONE: readonly JsonObject[] = []

export function createDiscovery(): Discovery {
  const services = new Map<string, DiscoveredPorts>()
  return {
    set: (service, ports) => void services.set(service, ports),
    nodes(name) {
      const end = name.lastIndexOf(':')
      return services.get(name.slice(0, end))?.[name.slice(end + 1)] ?? NONE
    },
    dump() {
      const endpoints: Json[] = [...services].map(([name, ports]) => ({ name, value: JSON.stringify(ports) }))
      return { config: { default_weight: 50 }, endpoints: [{ endpoints }] }
    }
  }
}
