import { createWriteStream } from 'node:fs'
import { createDiscovery, type DiscoveredPorts, type Discovery } from '../apisix/discovery.ts'
import { startGateway, type Gateway } from '../apisix/gateway.ts'
import { createStore } from '../apisix/store.ts'
import { now } from '../now.ts'
import type { Confirmation, GatewayAddress, GatewaysOptions } from './options.ts'

export interface Gateways {
  readonly admin: { readonly url: string; readonly key: string }
  readonly gateways: readonly GatewayAddress[]
  /** Sets the nodes of a Service (`namespace/name`) that a gateway has discovered, if discovery is configured. */
  readonly discovered: (gateway: string, service: string, ports: DiscoveredPorts) => void
  close(): Promise<void>
}

const upTo = (ms: number) => () => Math.random() * ms

/** Starts all gateways in this process. If an address is not available, it stops all of them and rejects. */
export async function startGateways(
  options: GatewaysOptions,
  onConfirmed: (confirmation: Confirmation) => void = () => {}
): Promise<Gateways> {
  const shared = createStore()
  const stores = [shared]
  const started: Gateway[] = []
  const dictionaries = new Map<string, Discovery>()
  const accessLog = options.accessLog === undefined ? undefined : createWriteStream(options.accessLog)
  const adminLog = options.adminLog === undefined ? undefined : createWriteStream(options.adminLog)
  const close = async () => {
    await Promise.all(started.map(gateway => gateway.close()))
    accessLog?.end()
    adminLog?.end()
    for (const store of stores) store.close()
  }
  try {
    for (const [i, host] of options.hosts.entries()) {
      const name = `apisix-${i}`
      const store = options.standalone && i > 0 ? createStore() : shared
      if (store !== shared) stores.push(store)
      const discovery = options.discovery ? createDiscovery() : undefined
      if (discovery) dictionaries.set(name, discovery)
      started.push(
        await startGateway({
          store,
          name,
          ...(discovery && { discovery }),
          standalone: options.standalone ?? false,
          host,
          proxyPort: options.proxyPort,
          controlPort: options.controlPort,
          ...((i === 0 || options.standalone) && { adminPort: options.adminPort }),
          ...(options.barrier && {
            barrierPort: options.barrier.port,
            barrierToken: options.barrier.token
          }),
          workers: options.workers,
          ...(options.behindMs !== undefined &&
            i === options.hosts.length - 1 && { applyDelay: upTo(options.behindMs) }),
          adminKey: options.adminKey
        })
      )
    }
  } catch (error) {
    await close()
    throw error
  }
  for (const { name, barrier } of started) {
    barrier?.onConfirmed((uid, what) => onConfirmed({ uid, what, gateway: name, at: now() }))
  }
  for (const { name, admin } of started) {
    admin?.listener.server.on('request', ({ method, url, headers }) => {
      const request = { gateway: name, method, path: url, by: headers['user-agent'] ?? '' }
      adminLog?.write(`${JSON.stringify(request)}\n`)
    })
  }
  if (accessLog) {
    for (const gateway of started) gateway.onAccess(fact => accessLog.write(`${JSON.stringify(fact)}\n`))
  }
  return {
    admin: { url: started[0]?.urls.admin ?? '', key: options.adminKey },
    gateways: started.map(({ name, host, urls }) => ({
      name,
      host,
      proxy: urls.proxy,
      admin: urls.admin,
      control: urls.control,
      barrier: urls.barrier
    })),
    discovered: (gateway, service, ports) => dictionaries.get(gateway)?.set(service, ports),
    close
  }
}
