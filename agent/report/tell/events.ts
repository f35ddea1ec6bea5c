import type { Clock } from '../../base/clock.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Log } from '../../base/log.ts'
import { idleLagOf, lagOf, type Moments, momentsOf } from '../snapshot/drain-view.ts'
import { createHash } from 'node:crypto'
import { formatDuration } from '../../rules/drain/annotations.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Leader } from '../../kubernetes/lead/elector.ts'
import { isRiskless, type Observer } from '../../round/gather/drain-status.ts'
import { isDenied } from '../../base/errors.ts'

interface EventsOptions {
  /** Creates an object at the API server. Resolves with any status; rejects if no answer comes in time. */
  readonly post: (path: string, body: unknown, signal: AbortSignal) => Promise<{ readonly status: number }>
  readonly clock: Clock
  readonly log: Log
  /** The pod name of the agent that reports the Event. */
  readonly instance: string
}

export type Events = ReturnType<typeof createEvents>

/** The longest queue. */
const LONGEST = 1000
/** The interval between two writes, in ms. */
const PAUSE_MS = 50

/**
 * Writes one Kubernetes Event for each drain, one after another, so that 500 pods at once do not delay the agent's other calls. A failed
 * write is not retried, because no component waits for it.
 */
export function createEvents({ post, clock, log, instance }: EventsOptions) {
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
  const push = (regarding: Regarding, text: EventText, again: string): void => {
    if (stopped.signal.aborted || queue.length >= LONGEST) return
    queue.push(eventObject(regarding, text, again, clock.now(), instance))
    running ??= run()
  }

  return {
    /** A drain has left the phase `draining`. Returns at once: nothing waits for an Event. */
    add(drain: Drain, moments: Moments) {
      const text = eventText(drain, moments)
      const { uid, stops } = drain
      // After a restart, the pod can be drained again.
      if (text) push({ kind: 'Pod', ...drain.pod, uid }, text, stops[0]?.run ?? '')
    },
    /** A Service asks for a sync that the agent does not do. */
    addNotSynced(service: Omit<Regarding, 'kind'>, why: string) {
      const text = { type: 'Warning', reason: 'NotSynced', note: why } as const
      // It is emitted again when its text changes, or an hour later.
      push({ kind: 'Service', ...service }, text, `${why} ${Math.floor(clock.now() / HOUR_MS)}`)
    },
    /** Drops the rest of the queue. */
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      await running
    }
  }
}

/** The longest note that the API server accepts, in characters (events.k8s.io/v1: 1 kB), and then the longest name of an object. */
const LONGEST_NOTE = 1000
const LONGEST_NAME = 253

interface EventText {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'Drained' | 'NotProved' | 'DrainUndone' | 'NotSynced'
  readonly note: string
}

/** The text for a drain that has just left the phase `draining`; `undefined` if there is nothing to report. */
export function eventText(drain: Drain, moments: Moments): EventText | undefined {
  if (drain.phase === 'undone') return { type: 'Normal', reason: 'DrainUndone', note: drain.why }
  if (drain.phase === 'proven') {
    const { places, grade, gateways, why, forced } = drain.verdict
    // As with a pod of a Job: nothing was drained, and no hook called.
    if (places === 0 && moments.hookAt === null) return undefined
    const took = duration(lagOf(moments) ?? drain.at - drain.since)
    const idle = idleLagOf(moments)
    const note =
      places === 0
        ? `no gateway routes to it, evidence ${grade}`
        : `out of ${gateways.length} gateways in ${took}${idle === null ? '' : `, idle after ${duration(idle)}`}, evidence ${grade}: ${why}`
    return { type: forced ? 'Warning' : 'Normal', reason: 'Drained', note }
  }
  if (drain.phase === 'expired') {
    const { why, gateways } = drain.verdict
    const isEarly = drain.verdict.kind === 'waiting' && drain.verdict.vain
    const behind = gateways
      .filter(gateway => gateway.grade === undefined)
      .map(gateway => `${gateway.name}: ${gateway.why}`)
    const note = `not proved${isEarly ? '' : ' before the deadline'}: ${[why, ...behind].join('; ')}`
    return { type: 'Warning', reason: 'NotProved', note }
  }
  return undefined
}

const duration = (ms: Millis): string => formatDuration(Math.round(ms))

/** The object that an Event is about. */
interface Regarding {
  readonly kind: 'Pod' | 'Service'
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

const HOUR_MS = 3_600_000

/**
 * The object to POST: an events.k8s.io/v1 Event. Its name is made from `again`, so it is the same from every agent and on every attempt, and
 * the API server refuses a repeated Event (409).
 *
 * @param again what makes it another Event
 */
export function eventObject(
  regarding: Regarding,
  { type, reason, note }: EventText,
  again: string,
  at: Millis,
  instance: string
) {
  const { kind, namespace, name, uid } = regarding
  const content = `${uid} ${reason} ${again}`
  const suffix = `.${createHash('sha256').update(content).digest('hex').slice(0, 16)}`
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name: `${name.slice(0, LONGEST_NAME - suffix.length)}${suffix}` },
    eventTime: new Date(at).toISOString().replace('Z', '000Z'),
    reportingController: 'apisix-drain.io/agent',
    reportingInstance: instance,
    action: kind === 'Pod' ? 'Drain' : 'Sync',
    type,
    reason,
    note: note.length <= LONGEST_NOTE ? note : `${note.slice(0, LONGEST_NOTE - 1)}…`,
    regarding: { apiVersion: 'v1', kind, namespace, name, uid }
  }
}

/** Emits a Kubernetes Event on every pod about the result of its drain. Only the leader emits: without one, there are only the answers. */
export function emitEvents(events: Pick<Events, 'add'>, leader: Pick<Leader, 'leads'>): Observer {
  return {
    drain(before, after, status) {
      if (!after || (before?.phase ?? 'draining') !== 'draining' || after.phase === 'draining') return
      if (after.phase === 'expired' && isRiskless(status)) return
      if (leader.leads()) events.add(after, momentsOf(after, status))
    }
  }
}

/** Logs one line for each step of a drain, and for each answer of a hook. */
export function logDrains(log: Log): Observer {
  return {
    ack({ pod: { namespace, name: pod, uid }, result, evidence, elapsedMs, status }, _drain, _status, hook) {
      log.info({ namespace, pod, uid, hook: hook.id, result, evidence, elapsedMs, status }, 'hook answered')
    },
    drain(before, after) {
      const drain = after ?? before
      if (!drain) return
      const { uid, pod, witnesses } = drain
      const facts = { namespace: pod.namespace, pod: pod.name, uid }
      if (!after) return log.debug(facts, 'drain forgotten')
      if (!before) log.info({ ...facts, ips: pod.ips, witnesses: Object.keys(witnesses) }, 'drain began')
      logStep(log, after, facts)
    }
  }
}

function logStep(log: Log, drain: Drain, facts: object): void {
  switch (drain.phase) {
    case 'draining':
      return
    case 'proven': {
      const { places, grade, why, forced } = drain.verdict
      return log[forced ? 'warn' : 'info'](
        { ...facts, places, evidence: grade, ms: Math.round(drain.at - drain.since), why },
        'drain proven'
      )
    }
    case 'expired':
      return log.warn({ ...facts, why: drain.verdict.why }, 'drain not proven')
    case 'undone':
      return log.info({ ...facts, why: drain.why }, 'drain undone')
    case 'gone':
      return log.debug(facts, 'pod gone')
  }
}

/** How often the log reports that the Admin API refuses the agent, in ms. */
const EVERY_MS = 60_000

/**
 * The only place that logs a refused key: at most one line a minute, however many parts call the Admin API. These parts show the refusal
 * in their state (a removal that failed, a listing that is old), and do not log it. Pass the result to every client of the Admin API.
 */
export function reportRefusals(clock: Clock, log: Log): (error: unknown) => void {
  let reportedAt = -Infinity
  return error => {
    if (!isDenied(error) || clock.now() < reportedAt + EVERY_MS) return
    reportedAt = clock.now()
    log.error({ err: error }, 'the Admin API refuses this agent')
  }
}
