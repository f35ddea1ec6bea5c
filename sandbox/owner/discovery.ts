import type { DiscoveredPorts } from '../apisix/discovery.ts'
import { now } from '../now.ts'
import { createRandom } from '../random.ts'
import type { OwnedService, Owner, OwnerWrite } from './owner.ts'
import { serviceOf, type Slice, type SliceSource } from './slices.ts'

interface DiscoveryOptions {
  readonly slices: SliceSource
  readonly services: readonly OwnedService[]
  /** Names of the gateways; each has a watch of its own. */
  readonly gateways: readonly string[]
  /** Sets the nodes of `namespace/name` that one gateway has discovered. */
  readonly tell: (gateway: string, service: string, ports: DiscoveredPorts) => void
  /** The delay from a change until a gateway knows it: a random number of ms for each gateway. */
  readonly lag: { readonly minMs: number; readonly maxMs: number }
  readonly seed: number
}

/** `default_weight` (discovery/kubernetes/schema.lua). */
const WEIGHT = 50

/**
 * The watches of gateways with `discovery.kubernetes`: no component writes, and each gateway has its own delay. An
 * endpoint counts if its `ready` is true; `terminating` and `serving` are ignored (core.lua:360).
 */
export function startDiscovery(options: DiscoveryOptions): Owner {
  const { slices, services, gateways, tell, lag } = options
  const random = createRandom(options.seed)
  const writes: OwnerWrite[] = []
  const timers = new Set<NodeJS.Timeout>()

  /** Sets the nodes as they are when the delay of this gateway ends, as if all waiting events of its watch came at once. */
  const refresh = (gateway: string, { namespace, name }: OwnedService, eventAt: number): void => {
    const service = `${namespace}/${name}`
    const ports = portsOf(slices.list().filter(slice => serviceOf(slice) === service))
    tell(gateway, service, ports)
    const nodes = Object.values(ports).flat() as unknown as OwnerWrite['nodes']
    writes.push({ service, eventAt, acceptedAt: now(), nodes })
  }
  const later = (service: OwnedService): void => {
    for (const gateway of gateways) {
      const eventAt = now()
      const timer = setTimeout(
        () => {
          timers.delete(timer)
          refresh(gateway, service, eventAt)
        },
        lag.minMs + random() * (lag.maxMs - lag.minMs)
      )
      timers.add(timer)
    }
  }
  for (const service of services) for (const gateway of gateways) refresh(gateway, service, now())
  const unsubscribe = slices.onChange(slice => {
    const service = services.find(({ namespace, name }) => serviceOf(slice) === `${namespace}/${name}`)
    if (service) later(service)
  })
  return {
    writes,
    close() {
      unsubscribe()
      for (const timer of timers) clearTimeout(timer)
      return Promise.resolve()
    }
  }
}

function portsOf(slices: readonly Slice[]): DiscoveredPorts {
  const ports: Record<string, { host: string; port: number; weight: number }[]> = {}
  for (const { endpoints, ports: listed } of slices) {
    for (const { name, port } of listed) {
      if (port === undefined) continue
      const ready = endpoints.filter(({ conditions }) => conditions?.ready === true)
      const nodes = ready.flatMap(({ addresses }) => addresses.map(host => ({ host, port, weight: WEIGHT })))
      if (nodes.length > 0) ports[name || String(port)] = [...(ports[name || String(port)] ?? []), ...nodes]
    }
  }
  return ports
}
