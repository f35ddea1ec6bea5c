import type { Clock } from '../../base/clock.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Log } from '../../base/log.ts'
import { eventObject, eventText, serviceEvent, type Regarding } from './event.ts'
import type { Moments } from '../snapshot/drain-view.ts'

interface EventsOptions {
  /** Creates an object at the API server. Resolves with any status; rejects if no answer comes in time. */
  readonly post: (path: string, body: unknown, signal: AbortSignal) => Promise<{ readonly status: number }>
  readonly clock: Clock
  readonly log: Log
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

/** The longest queue. */
const LONGEST = 1000
/** The interval between two writes, in ms. */
const PAUSE_MS = 50

/**
 * Writes one Kubernetes Event for each drain, one after another, so that 500 pods at once do not delay the agent's other calls. A failed
 * write is not retried, because no component waits for it.
 */
export function createEvents({ post, clock, log, instance }: EventsOptions): Events {
  const stopped = new AbortController()
  const queue: ReturnType<typeof eventObject>[] = []
  let running: Promise<void> | undefined
  let failing = false

  const write = async (event: ReturnType<typeof eventObject>): Promise<void> => {
    const { namespace } = event.metadata
    try {
      const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events`
      const { status } = await post(path, event, stopped.signal)
      // 409: it exists already, from another agent or from an attempt whose answer was lost.
      if (status !== 201 && status !== 409) throw new Error(`status ${status}`)
      failing = false
    } catch (err) {
      if (stopped.signal.aborted) return
      if (!failing) log.warn({ err, namespace }, 'an Event could not be written')
      failing = true
    }
  }
  const run = async (): Promise<void> => {
    for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
      await write(event)
      if (stopped.signal.aborted) return
      await clock.sleep(PAUSE_MS, stopped.signal).catch(() => {})
    }
    running = undefined
  }
  const push = (event: ReturnType<typeof eventObject>): void => {
    if (stopped.signal.aborted || queue.length >= LONGEST) return
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
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      await running
    }
  }
}
