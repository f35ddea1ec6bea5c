import type { Clock } from '../../base/clock.ts'
import { isOwnLimit, type Drain, type Verdict } from '../../rules/drain/drain.ts'
import type { Metrics } from './metrics.ts'
import { lagOf, latestDecision, momentsOf } from '../snapshot/drain-view.ts'
import { isRiskless, type Status, type Observer } from '../../round/gather/drain-status.ts'
import { CodedError, isConflict, isRefused } from '../../base/errors.ts'
import { CALLS_OF } from './metric-registry.ts'
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Turns the decisions of rounds into metrics. */
export function meter(metrics: Metrics, clock: Clock): Observer {
  return {
    drain(before, after, status) {
      if (before?.phase === 'draining' && after && after.phase !== 'gone') left(after, status)
    },
    ack(ack, _drain, _status, hook) {
      if (isOwnLimit(hook, ack)) return
      const { result, evidence, elapsedMs } = ack
      metrics.hookAnswers.inc({ result, evidence })
      metrics.hookDuration.observe({ result }, elapsedMs / 1000)
    },
    round(tookMs) {
      metrics.roundDuration.observe(tookMs / 1000)
      metrics.roundSuccess.set(clock.now() / 1000)
    }
  }

  function left(drain: Drain, status: Status): void {
    if (drain.phase === 'draining' || drain.phase === 'gone') return
    if (drain.phase === 'expired' && !isRiskless(status)) unconfirmed(drain.verdict)
    if (drain.phase !== 'proven') return
    // No gateway routed to it, so it has no lag.
    if (drain.verdict.places === 0) return
    const moments = momentsOf(drain, status)
    const lag = lagOf(moments)
    if (lag !== null) metrics.syncLag.observe({ direction: 'removal' }, lag / 1000)
    const seconds = (to: number) => Math.max(0, to - latestDecision(moments)) / 1000
    for (const { name, at: confirmedAt, sealedAt } of drain.verdict.gateways) {
      const gateway = metrics.gatewayNames.labelOf(name)
      const at = sealedAt ?? confirmedAt
      if (at !== undefined) metrics.gatewayLag.observe({ direction: 'removal', gateway }, seconds(at))
    }
  }

  /** Leaves out waits that are no gateway's fault: a last node that had to stay, and requests in flight behind a seal. */
  function unconfirmed(verdict: Verdict): void {
    if (verdict.kind === 'proven' || verdict.lastEndpoint || verdict.barred) return
    for (const { name, grade } of verdict.gateways)
      if (grade === undefined) metrics.gatewayExpired.inc({ gateway: metrics.gatewayNames.labelOf(name) })
  }
}

/** Wraps a client of APISIX, so that its calls are counted and timed. Its callers do not notice. */
export type Metered = <C extends object>(api: keyof typeof CALLS_OF, client: C) => C

const WRITES: ReadonlySet<string> = new Set(['patch', 'put'])

export function metered(metrics: Metrics, clock: Clock): Metered {
  const written = (err: unknown) => {
    const failed = isConflict(err) ? 'conflict' : isRefused(err) ? 'refused' : 'failed'
    metrics.adminWrites.inc({ result: err === undefined ? 'accepted' : failed })
  }
  return (api, client) => {
    const measure =
      (operation: string, run: (...args: unknown[]) => Promise<unknown>) =>
      async (...args: unknown[]) => {
        const beganAt = clock.now()
        const over = (err?: unknown) => {
          const result = err === undefined ? 'ok' : 'error'
          metrics.callDuration.observe({ api, operation, result }, (clock.now() - beganAt) / 1000)
          if (err instanceof CodedError) metrics.errors.inc({ code: err.code })
          if (api === 'admin' && WRITES.has(operation)) written(err)
        }
        try {
          const answer = await run(...args)
          over()
          return answer
        } catch (err) {
          over(err)
          throw err
        }
      }
    const calls = Object.entries(client).filter(([name]) => CALLS_OF[api].some(call => call === name))
    return { ...client, ...Object.fromEntries(calls.map(([name, run]) => [name, measure(name, run)])) }
  }
}

/** Not exported: gauges with the names of counters, for which every scrape must list all sockets. */
const COSTLY = /^nodejs_active_/

let ofProcess: Registry | undefined

/** prom-client's own metrics of the process (`process_*`, `nodejs_*`). One for all agents of a process: it cannot be stopped. */
function processMetrics(): Registry {
  if (ofProcess) return ofProcess
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const { name } of registry.getMetricsAsArray())
    if (COSTLY.test(name)) registry.removeSingleMetric(name)
  return (ofProcess = registry)
}

/**
 * Makes a value rarely, however often it is read: its readers may be strangers.
 *
 * @param leastMs the shortest time between two values
 * @param rest the pause after a value, as a multiple of the time that making it took
 */
export function seldom<T>(
  { now }: Pick<Clock, 'now'>,
  leastMs: number,
  rest: number,
  make: () => T
): () => T {
  let made: { readonly until: number; readonly value: T } | undefined
  return () => {
    const from = now()
    if (made && from < made.until) return made.value
    const value = make()
    made = { value, until: Math.max(from + leastMs, now() + rest * (now() - from)) }
    return value
  }
}

/** The text of `/metrics`: the agent's metrics and those of its process. `collect` updates gauges first. */
export function createExposition(
  { registry }: Pick<Metrics, 'registry'>,
  clock: Pick<Clock, 'now'>,
  collect: () => void
) {
  const process = processMetrics()
  return {
    contentType: registry.contentType,
    metrics: seldom(clock, 1000, 0, async (): Promise<string> => {
      collect()
      return `${await registry.metrics()}\n${await process.metrics()}`
    })
  }
}
