import { createWriteStream } from 'node:fs'
import { startApisix } from '../apisix/apisix.ts'
import { createDiscovery, type DiscoveredPorts } from '../apisix/discovery.ts'
import { now } from '../now.ts'
import type { Confirmation, GatewayAddress, GatewaysOptions } from './options.ts'

export interface Gateways {
  readonly admin: { readonly url: string; readonly key: string }
  readonly gateways: readonly GatewayAddress[]
  /** Sets the nodes of a Service (`namespace/name`) that a gateway has discovered, if discovery is configured. */
  readonly discovered: (gateway: string, service: string, ports: DiscoveredPorts) => void
  /** Stops a gateway, with its connections, or starts it again. */
  readonly run: (gateway: string, on: boolean) => void
  close(): Promise<void>
}

/** How long a gateway that starts waits for the agent: the plugin's default. */
const FETCH_MS = 10_000

const upTo = (ms: number) => () => Math.random() * ms

/** Starts all gateways in this process. If an address is not available, it stops all of them and rejects. */
export async function startGateways(
  options: GatewaysOptions,
  onConfirmed: (confirmation: Confirmation) => void = () => {}
): Promise<Gateways> {
  const { hosts, proxyPort, controlPort, adminPort, adminKey, barrier, workers, behindMs } = options
  const { standalone = false } = options
  const dictionaries = hosts.map(() => (options.discovery ? createDiscovery() : undefined))
  const apisix = await startApisix({
    hosts,
    proxyPort,
    controlPort,
    adminKey,
    workers,
    standalone,
    ...(barrier && {
      barrierPort: barrier.port,
      barrierToken: barrier.token,
      ...(barrier.agent && { fetchEntries: { url: barrier.agent, timeoutMs: FETCH_MS } })
    }),
    each: i => ({
      ...(dictionaries[i] && { discovery: dictionaries[i] }),
      ...((i === 0 || standalone) && { adminPort }),
      ...(behindMs !== undefined && i === hosts.length - 1 && { applyDelay: upTo(behindMs) })
    })
  })
  const accessLog = options.accessLog === undefined ? undefined : createWriteStream(options.accessLog)
  const adminLog = options.adminLog === undefined ? undefined : createWriteStream(options.adminLog)
  const { gateways } = apisix
  for (const gateway of gateways) {
    const { name, admin } = gateway
    gateway.barrier?.onConfirmed((uid, what) => onConfirmed({ uid, what, gateway: name, at: now() }))
    if (accessLog) gateway.onAccess(fact => accessLog.write(`${JSON.stringify(fact)}\n`))
    admin?.listener.server.on('request', ({ method, url, headers }) => {
      const request = { gateway: name, method, path: url, by: headers['user-agent'] ?? '' }
      adminLog?.write(`${JSON.stringify(request)}\n`)
    })
  }
  return {
    admin: { url: gateways[0]?.urls.admin ?? '', key: adminKey },
    gateways: gateways.map(({ name, host, urls }) => ({
      name,
      host,
      proxy: urls.proxy,
      admin: urls.admin,
      control: urls.control,
      barrier: urls.barrier
    })),
    discovered: (gateway, service, ports) =>
      dictionaries[gateways.findIndex(({ name }) => name === gateway)]?.set(service, ports),
    run(name, on) {
      const gateway = gateways.find(one => one.name === name)
      void (on ? gateway?.start() : gateway?.stop())
    },
    async close() {
      await apisix.close()
      accessLog?.end()
      adminLog?.end()
    }
  }
}
