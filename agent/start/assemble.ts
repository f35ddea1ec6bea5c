import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createRare, type Log } from '../base/log.ts'
import { loadAssets, type DashboardParts } from '../report/page/dashboard.ts'
import { seldom, createExposition, meter, metered } from '../report/metrics/round-metrics.ts'
import { createGuard } from '../report/page/guard.ts'
import { MOST_HOOKS } from '../hook/listen.ts'
import type { Snapshot } from '../report/snapshot/snapshot.ts'
import type { Sources } from '../round/gather/sources.ts'
import type { MissingPart } from '../round/hold/hooks.ts'
import { missingParts } from '../round/ownership.ts'
import { createLoop, type Loop, type LoopSettings } from '../round/loop.ts'
import { logDrains, emitEvents, createEvents, type Events } from '../report/tell/events.ts'
import { LOAD_IT, type ProofSettings } from '../rules/proof/verdict.ts'
import { syncObserver } from '../upkeep/upkeep.ts'
import { createAnswers } from '../report/show/record.ts'
import { createViews } from '../report/show/views.ts'
import { createMetrics } from '../report/metrics/metrics.ts'
import { createApp, type BarrierEntriesParts, type App, type ServeParts } from '../hook/app.ts'
import { createHookSlots, createOnlyApisix, type HookSlots } from '../hook/prestop.ts'
import { startSources, startWatches, stopSources } from './start-sources.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'

/** The pause after a state, as a multiple of the time that making it took: so all pages together cost a twentieth of a core at most. */
const REST = 20

/** `undefined` if the dashboard is not enabled. */
function createPage(
  config: Config['serve']['dashboard'],
  snapshot: () => Snapshot,
  clock: Clock,
  log: Log
): DashboardParts | undefined {
  if (!config) return undefined
  const assets = loadAssets()
  if (!assets) log.warn('the dashboard has not been built: npm run build:dashboard')
  const state = seldom(clock, 1000, REST, () => JSON.stringify(snapshot()))
  return { guard: createGuard(config.auth, clock), assets, state }
}

/** After this time without a round the agent reports itself as dead, in ms; the loop is woken every second. */
const STUCK_MS = 30_000
/** How often the holders are listed again during drains, in ms. */
const GUARD_EVERY_MS = 2000
/** How long the drain of a pod that is gone is kept, in ms, while it is not known whether a holder lists it. */
const GHOST_MS = 3_600_000

/** How long objects of other namespaces hold a pod that is their last node, in ms. Then the barrier seals it. */
export const FOREIGN_HOLD_MS = 5000

/** The connected parts of the agent: everything but the port, the signals and the exit code. */
export interface Assembly {
  readonly sources: Sources
  readonly loop: Loop
  /** The app on `serve.port`. */
  readonly app: App
  /** The app on `serve.pagePort`, if that is set. */
  readonly pages: App | undefined
  readonly slots: HookSlots
  /** What the agent needs before it is ready, and lacks. */
  readonly missing: () => readonly MissingPart[]
  /** Stops every part. Close the listener first. */
  readonly stop: () => Promise<void>
}

interface AssemblyOptions {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  /** Overrides of the configuration's settings. */
  readonly settings?: Partial<LoopSettings>
  /** From one full listing of the holders to the next. */
  readonly inventoryEveryMs?: number | undefined
}

/**
 * Builds the parts from the configuration and connects them; they run from now on.
 *
 * @throws Error if there are no usable Kubernetes credentials
 */
export function assemble(options: AssemblyOptions): Assembly {
  const { config, version, clock, log, settings, inventoryEveryMs } = options
  const metrics = createMetrics()
  metrics.buildInfo.set({ version, node: process.version }, 1)
  const cluster = startWatches(config, clock, log)
  const events = eventsOf(cluster, clock, log)
  const meters = metered(metrics, clock)
  const answers = createAnswers(hostname())
  const sources = startSources({ config, clock, log, meters, cluster, events, answers, inventoryEveryMs })
  const views = createViews({
    sources,
    config,
    clock,
    missing: () => missing(),
    metrics,
    answers,
    version
  })
  const loop: Loop = createLoop({
    sources,
    drains: sources.drains,
    settings: { ...settingsOf(config), ...settings },
    clock,
    log: log.child({ part: 'loop' }),
    observers: [
      meter(metrics, clock),
      logDrains(log.child({ part: 'drain' })),
      ...views.observers,
      syncObserver(sources.sync, sources.writer, () => clock.now()),
      emitEvents(events, sources.leader)
    ]
  })
  const slots = createHookSlots(MOST_HOOKS)
  const stopping = { part: 'shutdown', why: 'the agent is stopping' }
  const missing = () => [...missingParts(sources), ...(slots.isOpen() ? [] : [stopping])]
  const served: ServeParts = {
    holds: loop.holds,
    isOnlyApisix: createOnlyApisix((...of) => sources.cluster.call(...of), clock),
    slots,
    clock,
    log: log.child({ part: 'serve' }),
    rare: createRare(clock),
    metrics,
    reserveMs: config.drain.reserveMs,
    missing,
    alive: () => views.alive(STUCK_MS),
    dashboard: createPage(config.serve.dashboard, () => views.snapshot(loop), clock, log),
    barrier: barrierParts(config, sources, loop),
    exposition: createExposition(metrics, clock, () => views.collect(loop))
  }
  const isApart = config.serve.pagePort !== undefined
  return {
    sources,
    loop,
    app: createApp(served, isApart ? 'hooks' : 'all'),
    pages: isApart ? createApp(served, 'pages') : undefined,
    slots,
    missing,
    async stop() {
      loop.stop()
      await events.stop()
      await stopSources(sources)
    }
  }
}

function eventsOf(cluster: Pick<Cluster, 'call'>, clock: Clock, log: Log): Events {
  return createEvents({
    post: (path, body, signal) => cluster.call('POST', path, body, signal),
    clock,
    log: log.child({ part: 'events' }),
    instance: hostname()
  })
}

function barrierParts({ apisix }: Config, { barrier }: Sources, loop: Loop): BarrierEntriesParts | undefined {
  if (!apisix.barrier || !barrier) return undefined
  const { token } = apisix.barrier
  return { token: () => token.read(), fetched: () => barrier.fetched(), vouch: () => loop.vouchForEntries() }
}

function provedBy({ drain, apisix }: Config): ProofSettings['by'] {
  if (drain.dryRun)
    return { why: 'dry run: nothing is written', change: 'set drain.dryRun to false, to have pods drained' }
  if (apisix.barrier) return 'barrier'
  if (apisix.control.enabled) return 'observed'
  return { why: 'nothing shows what gateways do: no apisix.barrier, no apisix.control', change: LOAD_IT }
}

function settingsOf(config: Config): LoopSettings {
  const { drain, kubernetes, sync } = config
  return {
    drain: { reserveMs: drain.reserveMs, ghostMs: GHOST_MS },
    plan: { dryRun: drain.dryRun },
    proof: {
      by: provedBy(config),
      settleMs: drain.settleMs,
      longLivedMs: drain.longLivedMs
    },
    foreignHoldMs: FOREIGN_HOLD_MS,
    someNamespacesOnly: kubernetes.namespaces.length > 0,
    podRanges: sync.podRanges,
    guardEveryMs: GUARD_EVERY_MS
  }
}
