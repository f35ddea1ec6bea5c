import type { Clock } from '../../base/clock.ts'
import { CodedError, isConflict, isRefused } from '../../base/errors.ts'
import type { AdminApi } from '../../gateway/apisix/admin-api.ts'
import type { BarrierApi } from '../../gateway/apisix/barrier-api.ts'
import type { ReadGateway } from '../../gateway/apisix/control-api.ts'
import type { Metrics } from './metrics.ts'

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
