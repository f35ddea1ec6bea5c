import { startGateway, type Gateway, type GatewayOptions } from './gateway.ts'
import { createStore, type Store } from './store.ts'

export interface ApisixOptions extends Omit<
  GatewayOptions,
  'store' | 'name' | 'host' | 'proxyPort' | 'controlPort'
> {
  /** One gateway on each of these addresses, all with the same ports. */
  readonly hosts: readonly string[]
  /** 0 picks a free port; only with a single host. */
  readonly proxyPort: number
  readonly controlPort: number
  /** What one gateway has of its own, by its number from 0. */
  readonly each?: (number: number) => Partial<GatewayOptions>
}

/** A store and the gateways that follow it. In standalone mode it is the store of the first gateway; the others have their own. */
export interface Apisix {
  readonly store: Store
  readonly gateways: readonly Gateway[]
  /** One more gateway on the same store, as when a deployment scales up. */
  add(host: string): Promise<Gateway>
  close(): Promise<void>
}

/** Starts a gateway on each host. If an address is not available, it closes all of them and rejects. */
export async function startApisix({ hosts, each, ...options }: ApisixOptions): Promise<Apisix> {
  const store = createStore()
  const stores = [store]
  const gateways: Gateway[] = []
  let made = 0
  const add = async (host: string): Promise<Gateway> => {
    const own = options.standalone && made > 0 ? createStore() : store
    if (own !== store) stores.push(own)
    const gateway = await startGateway({
      ...options,
      ...each?.(made),
      store: own,
      host,
      name: `apisix-${made++}`
    })
    gateways.push(gateway)
    return gateway
  }
  const close = async (): Promise<void> => {
    await Promise.all(gateways.map(gateway => gateway.close()))
    for (const one of stores) one.close()
  }
  try {
    for (const host of hosts) await add(host)
  } catch (err) {
    await close()
    throw err
  }
  return { store, gateways, add, close }
}
