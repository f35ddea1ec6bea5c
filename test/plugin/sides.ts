import { createDiscovery } from '../../sandbox/apisix/discovery.ts'
import { startGateway } from '../../sandbox/apisix/gateway.ts'
import type { JsonObject } from '../../sandbox/apisix/json.ts'
import { createStore, keyOf } from '../../sandbox/apisix/store.ts'
import { Barrier } from './barrier.ts'
import { eventually } from './eventually.ts'
import { Gateway, type Kinds } from './gateway.ts'

export interface Configuration {
  readonly kinds: Kinds
  /** Other kinds for worker 0, in place of `kinds`. */
  readonly behind?: Kinds
  /** The discovered nodes of `shop/web:http`. */
  readonly discovered?: readonly { host: string; port: number; weight: number }[]
}

/** A gateway with three workers, real or stand-in, with the same interface for a test. */
export interface Side {
  readonly barrier: Barrier
  configure(configuration: Configuration): Promise<void>
  /** Freezes worker 0. */
  freeze(): void
  thaw(): void
  kill(): Promise<void>
  stop(): Promise<void>
}

export const NAMES = { 'shop.example': ['10.0.0.2', '10.0.0.1'] }
const KINDS = ['routes', 'services', 'plugin_configs', 'global_rules', 'consumers', 'consumer_groups']
/** A configuration without objects. If only discovery changes, nginx gets this with a new revision, to see when it is applied. */
const EMPTY: Kinds = Object.fromEntries(KINDS.map(kind => [kind, []]))

/** Starts the side of the plugin, in nginx. */
export async function pluginSide(): Promise<Side> {
  const gateway = await Gateway.start()
  gateway.barrier.words = true
  /** The pid of worker 0 as the state reports it. */
  let pid = 0
  const learn = async () => {
    await eventually('worker 0 is there', async () => {
      const { workers } = await gateway.barrier.state()
      pid = workers.find(w => w.id === 0)?.pid ?? 0
      return pid !== 0 && gateway.workers().includes(pid) && workers.length === 3
    })
  }
  return {
    barrier: gateway.barrier,
    configure: async ({ kinds, behind, discovered }) => {
      await gateway.configured({
        ...(discovered && { discovery: { 'shop/web:http': discovered } }),
        objects: {
          kinds: { ...EMPTY, ...kinds },
          names: NAMES,
          ...(behind && { worker: { 0: { ...EMPTY, ...behind } } })
        }
      })
      await learn()
    },
    freeze: () => process.kill(pid, 'SIGSTOP'),
    thaw: () => process.kill(pid, 'SIGCONT'),
    kill: async () => {
      const old = pid
      process.kill(old, 'SIGKILL')
      await eventually('another worker is there', async () => {
        const { workers, fit } = await gateway.barrier.state()
        return fit && workers.length === 3 && workers.every(w => w.pid !== old)
      })
      await learn()
    },
    stop: () => gateway.stop()
  }
}

/** Starts the side of the sandbox's stand-in for APISIX. */
export async function standInSide(): Promise<Side> {
  const store = createStore()
  const discovery = createDiscovery()
  const gateway = await startGateway({
    store,
    name: 'stand-in',
    host: '127.0.0.1',
    proxyPort: 0,
    controlPort: 0,
    barrierPort: 0,
    workers: 3,
    adminKey: 'none',
    barrierToken: 'token',
    applyDelay: () => 0,
    discovery,
    names: new Map(Object.entries(NAMES))
  })
  const barrier = new Barrier(gateway.urls.barrier ?? '', 'token')
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
    configure: async ({ kinds, behind, discovered }) => {
      gateway.workers[0]!.restoreWatch()
      if (discovered) discovery.set('shop/web', { http: discovered.map(node => ({ ...node })) })
      if (behind) {
        take(behind)
        await eventually('worker 0 has it', () => gateway.workers[0]!.config.revision === store.revision)
        gateway.workers[0]!.loseWatch()
      }
      take(kinds)
      const following = gateway.workers.filter(worker => !worker.stale && !worker.frozen)
      await eventually('every worker has it', () =>
        following.every(worker => worker.config.revision === store.revision)
      )
    },
    freeze: () => gateway.workers[0]!.freeze(),
    thaw: () => gateway.workers[0]!.thaw(),
    kill: async () => gateway.killWorker(0),
    stop: async () => {
      await gateway.close()
      store.close()
    }
  }
}
