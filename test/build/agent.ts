import { systemClock } from '../../agent/clock.ts'
import type { Config } from '../../agent/config.ts'
import type { PodFact } from '../../agent/drain/facts.ts'
import { createLoop, type Loop, type LoopSettings } from '../../agent/loop.ts'
import { meter } from '../../agent/loop/meter.ts'
import { narrate } from '../../agent/loop/narrate.ts'
import { createViews } from '../../agent/loop/views.ts'
import { metered } from '../../agent/metered.ts'
import { createMetrics } from '../../agent/metrics.ts'
import { createReadiness } from '../../agent/readiness.ts'
import { loopSettings, reportReadiness, startSources, stopSources } from '../../agent/run.ts'
import { createGate } from '../../agent/serve/gate.ts'
import { createApp } from '../../agent/serve/http.ts'
import { listen, listenLimits } from '../../agent/serve/listen.ts'
import { memoryLog } from './serve.ts'

/** The whole agent with all its real parts, in this process. What `run.ts` starts, less signals and exit codes. */
export interface TestAgent {
  readonly port: number
  readonly loop: Loop
  /** Its log, a line each. */
  readonly lines: readonly Record<string, unknown>[]
  /** What its watch knows of the pod with this address. */
  pod(ip: string): PodFact | undefined
  /** Whether its watch has seen a pod with this address. */
  knows(ip: string): boolean
  /** How many nodes the agent's inventory has for a holder. */
  nodes(holder: string): number
  /** When the listing began that its inventory rests on. */
  readAt(): number | undefined
  /** What is missing until it is ready; empty when it is. */
  missing(): readonly string[]
  /** As after SIGTERM, once the time for held hooks is over: they are refused, everything is closed. */
  close(): Promise<void>
}

/** While something is being drained the holders are listed again this often, in ms. */
const GUARD_EVERY_MS = 300

export async function startAgent(config: Config, differs: Partial<LoopSettings> = {}): Promise<TestAgent> {
  const clock = systemClock
  const { log, lines } = memoryLog()
  const metrics = createMetrics()
  const readiness = createReadiness()
  const sources = startSources(config, log, metered(metrics, clock), () => loop)
  const views = createViews({ sources, config, clock, readiness, metrics, version: 'test' })
  const loop: Loop = createLoop({
    sources,
    settings: { ...loopSettings(config), guardEveryMs: GUARD_EVERY_MS, ...differs },
    clock,
    log,
    observers: [meter(metrics, clock), narrate(log), views.observer]
  })
  const gate = createGate(config.serve)
  const app = createApp({
    holds: loop.holds,
    gate,
    clock,
    log,
    metrics,
    trustedQuery: config.serve.trustedQuery,
    reserveMs: config.drain.reserveMs,
    readiness,
    alive: () => views.alive(30_000),
    snapshot: () => views.snapshot(loop),
    exposition: metrics.registry
  })
  const server = await listen(app, config.serve, listenLimits(config.serve.maxHooks))
  const report = reportReadiness(readiness, sources)
  let closed = false
  return {
    port: server.port,
    loop,
    lines,
    pod: ip => loop.holds.findByIp(ip)[0],
    knows: ip => loop.holds.findByIp(ip).length > 0,
    nodes: holder => sources.inventory.holders().get(holder)?.nodes.length ?? 0,
    readAt: () => sources.inventory.readAt(),
    missing() {
      report()
      return readiness.missing().map(({ part, why }) => `${part}: ${why}`)
    },
    async close() {
      if (closed) return
      closed = true
      gate.letGo()
      await server.close()
      loop.stop()
      await stopSources(sources)
      metrics.close()
    }
  }
}
