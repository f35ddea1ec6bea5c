import type { Clock } from '../../base/clock.ts'
import type { Drain, Verdict } from '../../rules/drain/drain.ts'
import type { Metrics } from './metrics.ts'
import { lagOf, latestDecision, momentsOf } from '../snapshot/drain-view.ts'
import { isRiskless, type Status, type Observer } from '../../round/gather/drain-status.ts'
import { CodedError, isConflict, isRefused } from '../../base/errors.ts'
import type { AdminApi } from '../../gateway/apisix/admin-api.ts'
import type { BarrierApi } from '../../gateway/apisix/barrier-api.ts'
import type { ReadGateway } from '../../gateway/apisix/control-api.ts'
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Turns the decisions of rounds into metrics. */
export function meter(metrics: Metrics, clock: Clock): Observer {
  return {
    drain(before, after, status) {
      if (before?.phase === 'draining' && after && after.phase !== 'gone') left(after, status)
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

type Result = 'ok' | 'error'

/** Measures the clients of APISIX. Each wrapper has the interface of its client, so callers do not notice it. */
export interface Metered {
  admin(api: AdminApi): AdminApi
  control(read: ReadGateway): ReadGateway
  barrier(api: BarrierApi): BarrierApi
}

/** Wraps the agent's clients, so that their calls are counted and timed. */
export function metered(metrics: Metrics, clock: Clock): Metered {
  const timed = async <T>(
    call: () => Promise<T>,
    observe: (result: Result, seconds: number) => void
  ): Promise<T> => {
    const beganAt = clock.now()
    try {
      const answer = await call()
      observe('ok', (clock.now() - beganAt) / 1000)
      return answer
    } catch (err) {
      observe('error', (clock.now() - beganAt) / 1000)
      if (err instanceof CodedError) metrics.errors.inc({ code: err.code })
      throw err
    }
  }
  const written = async <T>(write: () => Promise<T>): Promise<T> => {
    try {
      const answer = await write()
      metrics.adminWrites.inc({ result: 'accepted' })
      return answer
    } catch (err) {
      metrics.adminWrites.inc({
        result: isConflict(err) ? 'conflict' : isRefused(err) ? 'refused' : 'failed'
      })
      throw err
    }
  }

  return {
    admin(api) {
      const call = <T>(operation: string, run: () => Promise<T>) =>
        timed(run, (result, seconds) => metrics.adminCallDuration.observe({ operation, result }, seconds))
      return {
        pageSize: api.pageSize,
        close: () => api.close(),
        list: (...args) => call('list', () => api.list(...args)),
        get: (...args) => call('get', () => api.get(...args)),
        patch: (...args) => call('patch', () => written(() => api.patch(...args))),
        put: (...args) => call('put', () => written(() => api.put(...args))),
        standalone: signal => call('standalone', () => api.standalone(signal))
      }
    },
    control: read => (host, signal) =>
      timed(
        () => read(host, signal),
        (result, seconds) => metrics.controlCallDuration.observe({ result }, seconds)
      ),
    barrier(api) {
      const call = <T>(operation: string, run: () => Promise<T>) =>
        timed(run, (result, seconds) => metrics.barrierCallDuration.observe({ operation, result }, seconds))
      return {
        put: (...args) => call('put', () => api.put(...args)),
        remove: (...args) => call('remove', () => api.remove(...args)),
        inflight: (...args) => call('inflight', () => api.inflight(...args)),
        state: signal => call('state', () => api.state(signal)),
        entries: signal => call('entries', () => api.entries(signal))
      }
    }
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

/** Makes a value at most once a second, however often it is read: its readers may be strangers. */
export function onceASecond<T>({ now }: Pick<Clock, 'now'>, make: () => T): () => T {
  let made: { readonly at: number; readonly value: T } | undefined
  return () => (made && now() < made.at + 1000 ? made : (made = { value: make(), at: now() })).value
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
    metrics: onceASecond(clock, async (): Promise<string> => {
      collect()
      return `${await registry.metrics()}\n${await process.metrics()}`
    })
  }
}
