import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { clock, count } from './format.ts'
import { lanesOf, type Lane } from './lanes.ts'
import { formatAge } from './why-behind.ts'
import { GRADES } from './words.ts'

export const HOUR_MS = 3_600_000

/** The result of the last hour, beside the headline. It says nothing about the present. */
export interface LastHour {
  readonly level: 'well' | 'busy' | 'bad'
  readonly text: string
  /** The drain to look at, as the id of its lane; empty if none needs a look. */
  readonly drain: string
}

/** The pods that ended within the hour: how many were proved, and the last that was not. An agent that is younger says so. */
export function lastHourOf({ at, agent, drains, past, unproved }: Snapshot): LastHour {
  const lanes = new Map(
    [...lanesOf([], unproved), ...lanesOf(drains, past)].map(lane => [lane.id, lane] as const)
  )
  const over = [...lanes.values()].filter(
    ({ standing, drain }) => (standing === 'proved' || standing === 'unproved') && at - endOf(drain) < HOUR_MS
  )
  const isYoung = at - agent.startedAt < HOUR_MS
  const when = isYoung
    ? `Since this agent started ${formatAge(at - agent.startedAt)} ago`
    : 'In the last hour'
  const late = newest(over.filter(({ drain }) => (drain.afterAck ?? 0) > 0))
  if (late) {
    const requests = count(late.drain.afterAck ?? 0, 'request')
    const text = `${when}, ${nameOf(late)} got ${requests} after its answer: look at the error.log of its gateways.`
    return { level: 'bad', text, drain: late.id }
  }
  const failed = over.filter(({ standing }) => standing === 'unproved')
  const last = newest(failed)
  if (last) {
    const text = `${when}, ${failed.length} of ${count(over.length, 'pod')} not proved in time, the last ${nameOf(last)} at ${clock(endOf(last.drain))}: ${reasonOf(last)}`
    return { level: 'bad', text, drain: last.id }
  }
  if (over.length === 0) return { level: 'well', text: `${when}, no pod ended.`, drain: '' }
  const weak = over.flatMap(({ drain: { verdict } }) =>
    verdict?.grade && verdict.grade !== 'barrier' ? [GRADES[verdict.grade].label] : []
  )
  if (weak.length === 0)
    return { level: 'well', text: `${when}, ${count(over.length, 'pod')} proved.`, drain: '' }
  const text = `${when}, ${weak.length} of ${count(over.length, 'pod')} ${weak[0]}.`
  return { level: 'busy', text, drain: '' }
}

const endOf = ({ moments, deadline }: Lane['drain']): number => moments.ackAt ?? moments.goneAt ?? deadline
const newest = (lanes: readonly Lane[]): Lane | undefined =>
  lanes.toSorted((a, b) => endOf(b.drain) - endOf(a.drain))[0]
const nameOf = ({ drain }: Lane): string => `${drain.namespace}/${drain.pod}`

/** The reasons without the words around them. */
const reasonOf = ({ drain }: Lane): string =>
  drain.why.replace(/^(?:waiting|nothing can be proved) \((.*)\)$/s, '$1')
