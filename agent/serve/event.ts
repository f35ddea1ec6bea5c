import { createHash } from 'node:crypto'
import type { Drain } from '../drain/drain.ts'
import { formatDuration } from '../drain/duration.ts'
import type { Millis } from '../drain/facts.ts'
import { lagOf } from './lag.ts'
import type { Moments } from './snapshot.ts'

/** The longest note that the API server takes (events.k8s.io/v1: 1 kB), and the longest name of an object. */
const LONGEST_NOTE = 1000
const LONGEST_NAME = 253

export interface EventText {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'Drained' | 'NotProved' | 'DrainUndone'
  readonly note: string
}

/** What is said on the pod of a drain that has just left the phase `draining`; `undefined` where that is nothing. */
export function eventText(drain: Drain, moments: Moments): EventText | undefined {
  if (drain.phase === 'undone') return { type: 'Normal', reason: 'DrainUndone', note: shortened(drain.why) }
  if (drain.phase === 'proven') {
    const { result, grade, gateways, why } = drain.verdict
    const took = formatDuration(Math.round(lagOf(moments) ?? drain.at - drain.since))
    const confirmed = gateways.filter(gateway => gateway.grade !== undefined).length
    const note =
      result === 'not-routed'
        ? `no gateway routes to it, evidence ${grade}`
        : `out of ${confirmed}/${gateways.length} gateways in ${took}, evidence ${grade}: ${why}`
    return { type: 'Normal', reason: 'Drained', note: shortened(note) }
  }
  if (drain.phase === 'expired') {
    const { why, gateways, grade } = drain.verdict
    const behind = gateways
      .filter(gateway => gateway.grade === undefined)
      .map(gateway => `${gateway.name}: ${gateway.why}`)
    const note = `not proved before the deadline, evidence ${grade ?? 'none'}: ${[why, ...behind].join('; ')}`
    return { type: 'Warning', reason: 'NotProved', note: shortened(note) }
  }
  return undefined
}

const shortened = (note: string): string =>
  note.length <= LONGEST_NOTE ? note : `${note.slice(0, LONGEST_NOTE - 1)}…`

/**
 * The object to POST: an events.k8s.io/v1 Event about the pod. Its name is the same whichever agent says it, and however
 * often: a pod is drained once between two restarts of its containers, and what is said twice is refused (409).
 */
export function eventObject(
  { pod, uid, restartsAtStart }: Pick<Drain, 'pod' | 'uid' | 'restartsAtStart'>,
  { type, reason, note }: EventText,
  at: Millis,
  instance: string
) {
  const said = createHash('sha256').update(`${uid} ${restartsAtStart} ${reason}`).digest('hex')
  const suffix = `.${said.slice(0, 16)}`
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: {
      namespace: pod.namespace,
      name: `${pod.name.slice(0, LONGEST_NAME - suffix.length)}${suffix}`
    },
    eventTime: new Date(at).toISOString().replace('Z', '000Z'),
    reportingController: 'apisix-drain.io/agent',
    reportingInstance: instance,
    action: 'Drain',
    type,
    reason,
    note,
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid }
  }
}
