import { hostname } from 'node:os'
import type { Config } from './config.ts'
import { systemClock } from './clock.ts'
import { createLog, type Log } from './log.ts'
import { createBarrierKeeper } from './confirm/barrier.ts'
import { createProbe } from './confirm/probe.ts'
import { createAdminApi } from './gateway/admin-api.ts'
import { createControlReader } from './gateway/control-api.ts'
import { createInventory } from './gateway/inventory.ts'
import { createWriter } from './gateway/writer.ts'
import { createLoop, type Loop, type LoopSettings } from './loop.ts'
import { expectedNodes } from './loop/expected.ts'
import { meter } from './loop/meter.ts'
import { narrate } from './loop/narrate.ts'
import type { Sources } from './loop/sources.ts'
import { tell } from './loop/tell.ts'
import { createViews } from './loop/views.ts'
import { metered, type Metered } from './metered.ts'
import { createMetrics } from './metrics.ts'
import { createPage } from './page.ts'
import { createReadiness, type Readiness } from './readiness.ts'
import { createEvents } from './serve/events.ts'
import { createGate } from './serve/gate.ts'
import { createApp } from './serve/http.ts'
import { listen, listenLimits } from './serve/listen.ts'
import { supervise } from './shutdown.ts'
import { barrierOptions, controlOptions, credentialSource, adminOptions, gatewaySelector } from './wire.ts'
import { startCluster, type Cluster } from './watch/cluster.ts'
import { loadCredentials } from './watch/credentials.ts'

/** How long a loop may go without a round before the agent calls itself dead, in ms; it is woken every second. */
const STUCK_MS = 30_000
const HEARTBEAT_MS = 1000
/** While something is being drained the holders are listed again this often, in ms. */
const GUARD_EVERY_MS = 2000
/** How long the drain of a pod that is gone is kept while a holder still lists it, in ms. */
const GHOST_MS = 3_600_000

/**
 * The agent: makes the parts, joins them, and runs until a signal comes. Returns the exit code.
 *
 * @throws Error when the credentials cannot be read or the port cannot be listened on
 */
export async function run(config: Config, version: string): Promise<number> {
  const clock = systemClock
  const log = createLog(config.log)
  const metrics = createMetrics()
  metrics.buildInfo.set({ version, node: process.version }, 1)
  const readiness = createReadiness()
  const sources = startSources(config, log, metered(metrics, clock), () => loop)
  const views = createViews({ sources, config, clock, readiness, metrics, version })
  const events = config.kubernetes.events
    ? createEvents({
        post: (path, body, signal) => sources.cluster.call('POST', path, body, signal),
        clock,
        log: log.child({ part: 'events' }),
        metrics,
        instance: hostname()
      })
    : undefined
  const loop: Loop = createLoop({
    sources,
    settings: loopSettings(config),
    clock,
    log: log.child({ part: 'loop' }),
    observers: [
      meter(metrics, clock),
      narrate(log.child({ part: 'drain' })),
      views.observer,
      ...(events ? [tell(events)] : []),
      { round: () => page?.poke() }
    ]
  })
  const page = createPage({
    config: config.serve.dashboard,
    snapshot: () => views.snapshot(loop),
    clock,
    log: log.child({ part: 'dashboard' })
  })
  const gate = createGate(config.serve)
  const app = createApp({
    holds: loop.holds,
    gate,
    clock,
    log: log.child({ part: 'serve' }),
    metrics,
    trustedQuery: config.serve.trustedQuery,
    reserveMs: config.drain.reserveMs,
    readiness,
    alive: () => views.alive(STUCK_MS),
    snapshot: () => views.snapshot(loop),
    dashboard: page?.parts,
    exposition: {
      metrics: () => {
        views.collect(loop)
        return metrics.registry.metrics()
      },
      contentType: metrics.registry.contentType
    }
  })
  const stopAll = async () => {
    loop.stop()
    await events?.stop()
    await stopSources(sources)
    metrics.close()
  }
  const server = await listen(app, config.serve, listenLimits(config.serve.maxHooks)).catch(
    async (err: unknown) => {
      await stopAll()
      throw err
    }
  )
  page?.open(server)
  log.info({ version, host: config.serve.host, port: server.port, dryRun: config.drain.dryRun }, 'listening')
  const report = reportReadiness(readiness, sources)

  return supervise({
    parts: [
      { name: 'http', run: signal => Promise.race([server.failed, aborted(signal)]) },
      {
        // The round is woken by events; this only makes sure that readiness and liveness are looked at without any.
        name: 'heartbeat',
        run: async signal => {
          while (!signal.aborted) {
            report()
            loop.wake()
            await clock.sleep(HEARTBEAT_MS, signal).catch(() => {})
          }
        }
      }
    ],
    finishMs: config.serve.shutdownTimeoutMs,
    clock,
    log: log.child({ part: 'shutdown' }),
    stopPromising() {
      gate.close()
      readiness.part('shutdown').notReady('the agent is stopping')
    },
    finishHolds: signal => gate.emptied(signal),
    async close() {
      gate.letGo()
      await page?.close()
      await server.close()
      await stopAll()
    }
  })
}

/** `loop` is asked for when something happens, because the loop is made from what this makes. */
export function startSources(config: Config, log: Log, meters: Metered, loop: () => Loop): Sources {
  const clock = systemClock
  const { apisix, kubernetes, drain } = config
  const part = (name: string) => log.child({ part: name })
  const admin = meters.admin(createAdminApi(adminOptions(apisix.admin)))
  const inventory = createInventory({ admin, clock, log: part('inventory'), everyMs: drain.inventoryEveryMs })
  const writer = createWriter({
    admin,
    inventory,
    clock,
    log: part('writer'),
    expected: holder => expectedNodes(cluster, holder, clock.now()),
    stillEnding: (uid, node) => loop().isEnding(uid, node)
  })
  const read = meters.control(createControlReader(controlOptions(apisix.control, clock)))
  const probe = createProbe({ read, clock, log: part('probe') })
  const barrier =
    apisix.barrier &&
    createBarrierKeeper({
      api: barrierOptions(apisix.barrier),
      wrap: api => meters.barrier(api),
      clock,
      log: part('barrier'),
      ttlMs: apisix.barrier.ttlMs
    })
  const cluster: Cluster = startCluster({
    credentials: loadCredentials(credentialSource(kubernetes), clock),
    namespaces: kubernetes.namespaces,
    gatewaySelector: gatewaySelector(apisix.gateways),
    clock,
    log: part('watch'),
    onChange: () => loop().wake()
  })
  inventory.start()
  return { cluster, inventory, writer, probe: apisix.control.enabled ? probe : withoutReads(probe), barrier }
}

/** The Control API is not to be read: nobody is ever asked, so no drain can reach `observed`. */
const withoutReads = (probe: Sources['probe']): Sources['probe'] => ({ ...probe, want: () => {} })

export async function stopSources({ cluster, inventory, writer, probe, barrier }: Sources): Promise<void> {
  await Promise.all([cluster.stop(), inventory.stop(), writer.stop(), probe.stop(), barrier?.stop()])
}

export function loopSettings({ drain }: Config): LoopSettings {
  return {
    drain: { reserveMs: drain.reserveMs, onDisruption: drain.onDisruption, ghostMs: GHOST_MS },
    plan: { dryRun: drain.dryRun, paused: false, deferMs: drain.deferWritesMs },
    proof: {
      // A dry run takes nothing out, so it can prove nothing: hooks are held for the floor, as the sleep would have done.
      minimumGrade: drain.dryRun ? 'timer' : drain.minimumGrade,
      reads: drain.reads,
      observedSettleMs: drain.observedSettleMs,
      acceptedSettleMs: drain.acceptedSettleMs,
      floorMs: drain.floorMs
    },
    guardEveryMs: GUARD_EVERY_MS
  }
}

/** Ready = the three watches are complete, a gateway is known, and the holders have been read (or a barrier does without). */
export function reportReadiness(readiness: Readiness, { cluster, inventory, barrier }: Sources): () => void {
  const parts = new Map(cluster.parts().map(({ name }) => [name, readiness.part(`watch:${name}`)]))
  const gateways = readiness.part('gateways')
  const holders = readiness.part('inventory')
  return () => {
    for (const { name, synced, problem } of cluster.parts()) {
      if (synced) parts.get(name)?.ready()
      else parts.get(name)?.notReady(problem || 'the first list is not complete yet')
    }
    if (cluster.gateways().length > 0) gateways.ready()
    else gateways.notReady('no gateway is known: check apisix.gateways')
    if (inventory.readAt() !== undefined || barrier) holders.ready()
    else holders.notReady(inventory.problem() || 'the holders have not been read yet')
  }
}

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}
