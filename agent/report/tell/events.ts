import type { Clock } from '../../base/clock.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Log } from '../../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { eventObject, eventText, serviceEvent, type Regarding } from './event.ts'
import { createWriteQueue } from './write-queue.ts'
import type { Moments } from '../snapshot/drain-view.ts'

interface EventsOptions {
  /** Creates an object at the API server. Resolves with any status; rejects if no answer comes in time. */
  readonly post: (path: string, body: unknown, signal: AbortSignal) => Promise<{ readonly status: number }>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'events'>
  /** The pod name of the agent that reports the Event. */
  readonly instance: string
}

export interface Events {
  /** A drain has left the phase `draining`. Returns at once: nothing waits for an Event. */
  add(drain: Drain, moments: Moments): void
  /** A Service asks for a sync that the agent does not do. */
  addNotSynced(service: Omit<Regarding, 'kind'>, why: string): void
  /** Drops the rest of the queue. */
  stop(): Promise<void>
}

/** Writes one Kubernetes Event for each drain, one after another. A failed write is counted and not retried. */
export function createEvents({ post, clock, log, metrics, instance }: EventsOptions): Events {
  const queue = createWriteQueue<ReturnType<typeof eventObject>>({
    clock,
    async write(event, signal) {
      const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(event.metadata.namespace)}/events`
      const { status } = await post(path, event, signal)
      // 409: it exists already, from another agent or from an attempt whose answer was lost.
      if (status !== 201 && status !== 409) throw new Error(`status ${status}`)
    },
    wrote: () => metrics.events.inc({ result: 'ok' }),
    failed({ metadata: { namespace } }, err, isFirst) {
      metrics.events.inc({ result: 'error' })
      if (isFirst) log.warn({ err, namespace }, 'an Event could not be written')
    }
  })
  const push = (event: ReturnType<typeof eventObject>): void => {
    if (!queue.push(event)) metrics.events.inc({ result: 'error' })
  }

  return {
    add(drain, moments) {
      const text = eventText(drain, moments)
      if (text) push(eventObject(drain, text, clock.now(), instance))
    },
    addNotSynced(service, why) {
      const text = { type: 'Warning', reason: 'NotSynced', note: why } as const
      push(serviceEvent(service, text, clock.now(), instance))
    },
    stop: () => queue.stop()
  }
}
