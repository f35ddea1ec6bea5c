import { alone } from '../../agent/kubernetes/lead/elector.ts'
import type { EndpointFact, PodFact, PodUid, ServiceFact } from '../../agent/rules/drain/facts.ts'
import { createGateways } from '../../agent/gateway/barrier/gateways.ts'
import { createInventory } from '../../agent/gateway/inventory/inventory.ts'
import { createWriter } from '../../agent/gateway/write/writer.ts'
import { createLoop, type Loop } from '../../agent/round/loop.ts'
import { createAsking, syncObserver } from '../../agent/upkeep/upkeep.ts'
import { worldFrom, type Sources, createDrainStore } from '../../agent/round/gather/sources.ts'
import { startSync } from '../../agent/start/start-sources.ts'
import { createPodStore } from '../../agent/kubernetes/facts/pod-store.ts'
import { createServiceStore } from '../../agent/kubernetes/facts/service-store.ts'
import { createSliceStore } from '../../agent/kubernetes/facts/slice-store.ts'
import { staticPart } from '../../agent/kubernetes/reflect/watch-status.ts'
import { silent } from './apisix.ts'
import { config } from './config.ts'
import { manualClock, type ManualClock } from './manual-clock.ts'
import { memoryAdmin, type MemoryAdminOptions } from './memory-admin.ts'
import { memoryLog } from './serve.ts'
import { asking, serviceFact } from './service.ts'

/**
 * The agent's own stores, inventory, loop and writer over an Admin API in memory: no sockets, and a clock that the test
 * moves. In place of the watches, the test sets the facts.
 */
export function syncWorld(options: MemoryAdminOptions & { readonly podRanges?: string } = {}) {
  const clock = manualClock()
  const apisix = memoryAdmin(options)
  const pods = createPodStore(clock)
  const slices = createSliceStore()
  const services = createServiceStore()
  const events: string[] = []
  let agent: SyncAgent | undefined

  const cluster = {
    pods: pods.store,
    slices: slices.store,
    services: services.store,
    gateways: () => [],
    gatewayEnded() {},
    assurePods() {},
    podsAssuredAt: () => -Infinity,
    podsAsOf: () => undefined,
    parts: () =>
      (['pods', 'endpointslices', 'gateways', 'services'] as const).map(name => staticPart(name, 0)),
    fetchPod: (namespace: string, name: string) => Promise.resolve(pods.store.byName(namespace, name)),
    // The API server has exactly the objects that the watches have reported.
    fetchPodsByIp: (ip: string) => Promise.resolve(pods.store.byIp(ip)),
    fetchService: () => Promise.resolve(true),
    call: () => Promise.reject(new Error('no API server')),
    isWatched: () => true,
    onChange: () => () => {},
    serverBehindMs: () => 0,
    verifyWatch() {},
    stop: () => Promise.resolve()
  }

  const world = {
    clock,
    apisix,
    events,
    pods: pods.store,
    slices: slices.store,
    pod(fact: PodFact) {
      if (pods.sink.set(fact)) agent?.loop.wake()
    },
    podGone(uid: PodUid) {
      if (pods.sink.gone(uid, undefined)) agent?.loop.wake()
    },
    slice(fact: EndpointFact) {
      if (slices.sink.set(fact)) agent?.loop.wake()
    },
    service(fact: ServiceFact) {
      if (services.sink.set(fact)) agent?.loop.wake()
    },
    get agent() {
      if (!agent) throw new Error('no agent was started')
      return agent
    },
    /** Starts an agent in place of the running one. Only APISIX and Kubernetes keep their state. */
    async start() {
      await agent?.stop()
      agent = startSyncAgent({
        clock,
        cluster,
        admin: apisix.admin,
        events,
        podRanges: options.podRanges ?? ''
      })
      await world.settle()
      return agent
    },
    /** Runs everything that is due by now. */
    async settle() {
      for (let i = 0; i < 12; i++) await new Promise(resolve => setImmediate(resolve))
    },
    /** Moves the clock in steps, and runs everything that becomes due. */
    async pass(ms: number, stepMs = 100) {
      for (let past = 0; past < ms; past += stepMs) {
        clock.advance(Math.min(stepMs, ms - past))
        agent?.loop.wake()
        await world.settle()
      }
    }
  }
  return world
}

interface SyncAgent {
  readonly loop: Loop
  readonly lines: readonly Record<string, unknown>[]
  stop(): Promise<void>
}

function startSyncAgent({
  clock,
  cluster,
  admin,
  events,
  podRanges
}: {
  readonly clock: ManualClock
  readonly cluster: Sources['cluster']
  readonly admin: ReturnType<typeof memoryAdmin>['admin']
  readonly events: string[]
  readonly podRanges: string
}): SyncAgent {
  const { log, lines } = memoryLog()
  const settings = config({
    SYNC_ALLOW: 'shop/*',
    ...(podRanges && { SYNC_POD_RANGES: podRanges })
  })
  const inventory = createInventory({
    lists: { open: async () => admin },
    clock,
    log: silent,
    everyMs: 30_000
  })
  const leader = alone('a test')
  const drains = createDrainStore(worldFrom({ cluster, inventory }, []))
  const mode: Sources['mode'] = { current: () => ({ mode: 'etcd' }) }
  const sync = startSync({
    config: settings,
    cluster,
    inventory,
    leader,
    mode,
    asking: createAsking({ cluster, clock, log }),
    log,
    drains,
    events: { addNotSynced: (service, why) => void events.push(`${service.name}: ${why}`) }
  })
  const writer = createWriter({
    admin,
    inventory,
    clock,
    log,
    prepare: async target => sync?.prepare(target),
    wishes: (target, found) => sync?.wishes(target, found) ?? [],
    stillEnding: (uid, node) => drains.isEnding(uid, node)
  })
  const loop = createLoop({
    sources: {
      mode,
      cluster,
      inventory,
      writer,
      gateways: createGateways({ clock, log }),
      probe: undefined,
      barrier: undefined,
      leader
    },
    drains,
    settings: {
      drain: { reserveMs: 7000, ghostMs: 3_600_000 },
      plan: { dryRun: false },
      proof: {
        by: 'observed',
        settleMs: 20,
        longLivedMs: 0
      },
      someNamespacesOnly: false,
      podRanges: [],
      guardEveryMs: 2000
    },
    clock,
    log,
    observers: [syncObserver(sync, writer, () => clock.now())]
  })
  inventory.start()
  loop.wake()
  return {
    loop,
    lines,
    async stop() {
      loop.stop()
      await Promise.all([inventory.stop(), writer.stop()])
    }
  }
}

export const service = (name: string, annotations: Readonly<Record<string, string>>): ServiceFact =>
  serviceFact(name, { annotations: asking(annotations) })
