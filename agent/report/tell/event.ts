import { createHash } from 'node:crypto'
import type { Drain } from '../../rules/drain/drain.ts'
import { formatDuration } from '../../rules/drain/duration.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import { idleLagOf, lagOf } from '../snapshot/lag.ts'
import type { Moments } from '../snapshot/drain-view.ts'

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
  if (drain.phase === 'undone') return { type: 'Normal', reason: 'DrainUndone', note: shortened(drain.why) }
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
    return { type: forced ? 'Warning' : 'Normal', reason: 'Drained', note: shortened(note) }
  }
  if (drain.phase === 'expired') {
    const { why, gateways } = drain.verdict
    const isEarly = drain.verdict.kind === 'waiting' && drain.verdict.vain
    const behind = gateways
      .filter(gateway => gateway.grade === undefined)
      .map(gateway => `${gateway.name}: ${gateway.why}`)
    const note = `not proved${isEarly ? '' : ' before the deadline'}: ${[why, ...behind].join('; ')}`
    return { type: 'Warning', reason: 'NotProved', note: shortened(note) }
  }
  return undefined
}

const duration = (ms: Millis): string => formatDuration(Math.round(ms))

const shortened = (note: string): string =>
  note.length <= LONGEST_NOTE ? note : `${note.slice(0, LONGEST_NOTE - 1)}…`

/** The object that an Event is about. */
export interface Regarding {
  readonly kind: 'Pod' | 'Service'
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The Event about the pod of a drain. The restart count is part of its name: after a restart, the pod can be drained again. */
export function eventObject(
  { pod, uid, stops }: Pick<Drain, 'pod' | 'uid' | 'stops'>,
  text: EventText,
  at: Millis,
  instance: string
) {
  const { namespace, name } = pod
  const said = `${uid} ${stops[0]?.run ?? ''} ${text.reason}`
  return eventAbout({ kind: 'Pod', namespace, name, uid }, 'Drain', text, said, at, instance)
}

/** An Event about a Service. It is emitted again if its text changes, and again in the next hour. */
export function serviceEvent(
  service: Omit<Regarding, 'kind'>,
  text: EventText,
  at: Millis,
  instance: string
) {
  const { namespace, name, uid } = service
  const said = `${uid} ${text.reason} ${text.note} ${Math.floor(at / HOUR_MS)}`
  const short = { ...text, note: shortened(text.note) }
  return eventAbout({ kind: 'Service', namespace, name, uid }, 'Sync', short, said, at, instance)
}

const HOUR_MS = 3_600_000

/**
 * The object to POST: an events.k8s.io/v1 Event. Its name is the same from every agent and on every attempt, so the API
 * server refuses a repeated Event (409).
 */
function eventAbout(
  regarding: Regarding,
  action: 'Drain' | 'Sync',
  { type, reason, note }: EventText,
  said: string,
  at: Millis,
  instance: string
) {
  const suffix = `.${createHash('sha256').update(said).digest('hex').slice(0, 16)}`
  const { namespace, name } = regarding
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name: `${name.slice(0, LONGEST_NAME - suffix.length)}${suffix}` },
    eventTime: new Date(at).toISOString().replace('Z', '000Z'),
    reportingController: 'apisix-drain.io/agent',
    reportingInstance: instance,
    action,
    type,
    reason,
    note,
    regarding: { apiVersion: 'v1', ...regarding }
  }
}
