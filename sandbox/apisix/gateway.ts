import type { AccessFact, AccessHook } from './access-log.ts'
import type { Api } from './api-server.ts'
import type { Barrier } from './barrier.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { runGateway, type GatewayRun } from './gateway-run.ts'
import type { Reachability } from './server.ts'
import type { Worker } from './worker.ts'

export type { GatewayOptions } from './gateway-options.ts'

export interface GatewayUrls {
  readonly proxy: string
  readonly control: string
  readonly admin: string | undefined
  readonly barrier: string | undefined
}

/** One running APISIX. A restart replaces its workers and other parts: do not keep references to them. */
export interface Gateway {
  readonly name: string
  readonly host: string
  /** The URLs stay the same over restarts. */
  readonly urls: GatewayUrls
  readonly running: boolean
  /** While the gateway is stopped, every member from here to `partition` fails. */
  readonly workers: readonly Worker[]
  readonly control: Api
  readonly admin: Api | undefined
  readonly barrier: Barrier | undefined
  readonly barrierApi: Api | undefined
  /** The errors that the plugin logged. */
  readonly log: readonly string[]
  killWorker(id: number): void
  /** As `apisix reload`: the gateway continues to serve, with new workers. */
  reload(): void
  /** Cuts its APIs off from their clients while it continues to serve. An API that is not named is `open`. */
  partition(cut: { control?: Reachability; admin?: Reachability; barrier?: Reachability }): Promise<void>
  /** Calls `listener` for every request that is over. Returns the function that removes the listener. */
  onAccess(listener: AccessHook): () => void
  /** As when its pod is killed: connections break, the deny-list is lost. */
  stop(): Promise<void>
  /** Starts the gateway again on the same addresses, with another instance id. */
  start(): Promise<void>
  restart(): Promise<void>
  /** Stops it and releases everything. */
  close(): Promise<void>
}

/** Starts a gateway. If an address is not available, it closes everything and rejects. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const listeners = new Set<AccessHook>()
  const tell = (fact: AccessFact): void => {
    for (const listener of listeners) listener(fact)
  }
  let run: GatewayRun | undefined = await runGateway(options, tell)
  const urlOf = (port: number): string =>
    `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`
  const ports = {
    proxyPort: run.proxy.port,
    controlPort: run.control.listener.port,
    ...(run.admin ? { adminPort: run.admin.listener.port } : {}),
    ...(run.barrierApi ? { barrierPort: run.barrierApi.listener.port } : {})
  }
  const current = (): GatewayRun => {
    if (!run) throw new Error(`gateway ${options.name} is stopped`)
    return run
  }
  const gateway: Gateway = {
    name: options.name,
    host: options.host,
    urls: {
      proxy: urlOf(ports.proxyPort),
      control: urlOf(ports.controlPort),
      admin: ports.adminPort === undefined ? undefined : urlOf(ports.adminPort),
      barrier: ports.barrierPort === undefined ? undefined : urlOf(ports.barrierPort)
    },
    get running() {
      return run !== undefined
    },
    get workers() {
      return current().workers
    },
    get control() {
      return current().control
    },
    get admin() {
      return current().admin
    },
    get barrier() {
      return current().barrier
    },
    get barrierApi() {
      return current().barrierApi
    },
    get log() {
      return current().log
    },
    killWorker: id => current().killWorker(id),
    reload: () => current().reload(),
    partition: async ({ control = 'open', admin = 'open', barrier = 'open' }) => {
      const { control: controlApi, admin: adminApi, barrierApi } = current()
      await controlApi.listener.reach(control)
      await adminApi?.listener.reach(admin)
      await barrierApi?.listener.reach(barrier)
    },
    onAccess: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: async () => {
      const last = run
      run = undefined
      await last?.close()
    },
    start: async () => {
      run ??= await runGateway({ ...options, ...ports }, tell)
    },
    restart: async () => {
      await gateway.stop()
      await gateway.start()
    },
    close: () => gateway.stop()
  }
  return gateway
}
