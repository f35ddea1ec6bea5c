import { createWriteStream } from 'node:fs'
import { startGateway, type Gateway } from '../apisix/gateway.ts'
import { createStore } from '../apisix/store.ts'
import { now } from '../now.ts'
import type { Confirmation, GatewayAddress, GatewaysOptions } from './options.ts'

export interface Gateways {
  readonly admin: { readonly url: string; readonly key: string }
  readonly gateways: readonly GatewayAddress[]
  close(): Promise<void>
}

/** Starts all gateways in this process. Rejects, and leaves none behind, when an address cannot be had. */
export async function startGateways(
  options: GatewaysOptions,
  onConfirmed: (confirmation: Confirmation) => void = () => {}
): Promise<Gateways> {
  const store = createStore()
  const started: Gateway[] = []
  const accessLog = options.accessLog === undefined ? undefined : createWriteStream(options.accessLog)
  const close = async () => {
    await Promise.all(started.map(gateway => gateway.close()))
    accessLog?.end()
    store.close()
  }
  try {
    for (const [i, host] of options.hosts.entries()) {
      started.push(
        await startGateway({
          store,
          name: `apisix-${i}`,
          host,
          proxyPort: options.proxyPort,
          controlPort: options.controlPort,
          ...(i === 0 && { adminPort: options.adminPort }),
          ...(options.barrier && {
            barrierPort: options.barrier.port,
            barrierToken: options.barrier.token
          }),
          workers: options.workers,
          adminKey: options.adminKey
        })
      )
    }
  } catch (error) {
    await close()
    throw error
  }
  for (const { name, barrier } of started) {
    barrier?.onConfirmed(uid => onConfirmed({ uid, gateway: name, at: now() }))
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
      control: urls.control,
      barrier: urls.barrier
    })),
    close
  }
}
