import { createDiscovery } from '../../../sandbox/apisix/discovery.ts'
import type { JsonObject } from '../../../sandbox/apisix/json.ts'
import { keyOf } from '../../../sandbox/apisix/store.ts'
import { Barrier } from '../../plugin/barrier.ts'
import { eventually } from '../../plugin/eventually.ts'
import type { Kinds } from '../../plugin/gateway.ts'
import { testGateway, TOKEN } from '../sandbox/apisix/fixture.ts'

interface Configuration {
  readonly kinds: Kinds
  /** The discovered nodes of `shop/web:http`. */
  readonly discovered?: readonly { host: string; port: number; weight: number }[]
}

/** A gateway of the sandbox with three workers, which run the plugin without nginx. */
export interface Side {
  readonly barrier: Barrier
  configure(configuration: Configuration): Promise<void>
  kill(worker: number): void
  stop(): Promise<void>
}

const NAMES = { 'shop.example': ['10.0.0.2', '10.0.0.1'] }
const KINDS = ['routes', 'services', 'plugin_configs', 'global_rules', 'consumers', 'consumer_groups']
/** A configuration without objects. */
const EMPTY: Kinds = Object.fromEntries(KINDS.map(kind => [kind, []]))

export async function startSide(): Promise<Side> {
  const discovery = createDiscovery()
  const names = new Map(Object.entries(NAMES))
  const world = await testGateway({ workers: 3, discovery, names })
  const { gateway, store } = world
  const barrier = new Barrier(gateway.urls.barrier ?? '', TOKEN)
  barrier.words = true
  const take = (kinds: Kinds) => {
    for (const [kind, list] of Object.entries({ ...EMPTY, ...kinds })) {
      const values = list as readonly (JsonObject & { id: string })[]
      const stays = new Map(values.map(value => [keyOf(kind, value.id), value]))
      for (const { key } of store.list(kind)) if (!stays.has(key)) store.delete(key)
      for (const [key, value] of stays)
        if (JSON.stringify(store.get(key)?.value) !== JSON.stringify(value)) store.put(key, value)
    }
  }
  return {
    barrier,
    configure: async ({ kinds, discovered }) => {
      if (discovered) discovery.set('shop/web', { http: discovered.map(node => ({ ...node })) })
      take(kinds)
      await eventually('every worker has it', () =>
        gateway.workers.every(worker => worker.config.revision === store.revision)
      )
    },
    kill: worker => gateway.killWorker(worker),
    stop: () => world.close()
  }
}
