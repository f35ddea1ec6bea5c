import type { Clock } from '../base/clock.ts'
import type { Drain } from '../drain/drain.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { eventObject, eventText, gateEvent, serviceEvent, type Regarding } from './event.ts'
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
  /** The readiness gate of a pod was opened without proof. */
  addGateOpened(pod: Omit<Regarding, 'kind'>, why: string): void
  /** Drops the rest of the queue. */
  stop(): Promise<void>
}

/** The longest queue of Events; more are dropped. A queue, so that 500 pods at once do not delay the agent's other calls. */
const LONGEST_QUEUE = 1000
/** The interval between two Events, in ms. */
const PAUSE_MS = 50

/** Writes one Kubernetes Event for each drain, one after another. A failed write is counted and not retried. */
export function createEvents({ post, clock, log, metrics, instance }: EventsOptions): Events {
  const stopped = new AbortController()
  const queue: ReturnType<typeof eventObject>[] = []
  let running: Promise<void> | undefined
  let failing = false

  const write = async (event: ReturnType<typeof eventObject>): Promise<void> => {
    const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(event.metadata.namespace)}/events`
    try {
      const { status } = await post(path, event, stopped.signal)
      // 409: it exists already, from another agent or from an attempt whose answer was lost.
      if (status !== 201 && status !== 409) throw new Error(`status ${status}`)
      failing = false
      metrics.events.inc({ result: 'ok' })
    } catch (err) {
      if (stopped.signal.aborted) return
      metrics.events.inc({ result: 'error' })
      if (!failing) log.warn({ err, namespace: event.metadata.namespace }, 'an Event could not be written')
      failing = true
    }
  }
  const run = async (): Promise<void> => {
    for (let event = queue.shift(); event; event = queue.shift()) {
      await write(event)
      if (stopped.signal.aborted) return
      await clock.sleep(PAUSE_MS, stopped.signal).catch(() => {})
    }
    running = undefined
  }

  const push = (event: ReturnType<typeof eventObject>): void => {
    if (stopped.signal.aborted) return
    if (queue.length >= LONGEST_QUEUE) {
      metrics.events.inc({ result: 'error' })
      return
    }
    queue.push(event)
    running ??= run()
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
    addGateOpened: (pod, why) => push(gateEvent(pod, why, clock.now(), instance)),
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      await running
    }
  }
}
