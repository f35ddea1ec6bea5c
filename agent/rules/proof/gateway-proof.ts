import type { BarrierReading, Evidence, Observation, ProofSettings } from './evidence.ts'
import type { GatewayReport } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import { longLivedWords, countOf } from '../drain/long-lived.ts'
import { plus } from '../drain/times.ts'

type GatewayEvidence = Evidence['gateways'][number]

/** The time from which each grade holds on one gateway, and the reason against a better grade. */
export interface Assessment {
  readonly report: GatewayReport
  readonly barrierAt: Millis | undefined
  readonly observedAt: Millis | undefined
  /** Why requests may still reach the pod through this gateway, which rules out a weaker grade; empty without such a sign. */
  readonly contrary: string
  readonly sealed: boolean
  /** The end of the wait for long-lived requests, if nothing else is in flight. */
  readonly waitsUntil: Millis | undefined
}

/**
 * The grades that the reports of one gateway support for one drain.
 *
 * @param longLivedUntil until when the drain waits for long-lived requests, in ms
 */
export function assess(
  { gateway, barrier, observation, doubt, unsealed }: GatewayEvidence,
  since: Millis,
  now: Millis,
  settings: ProofSettings,
  longLivedUntil: Millis
): Assessment {
  // A gateway may have no configuration yet while it starts, so it does not list the node. Its barrier shows a seal all the same.
  const starts = gateway.ready || gateway.terminating ? '' : 'not Ready, so its Control API does not count'
  const counts = doubt === ''
  const entry = entryOf(barrier, unsealed, since, now < longLivedUntil)
  const seen = observationOf(observation, settings)
  const barrierAt = counts && entry.state === 'idle' ? barrier?.unchangedSince : undefined
  const observedAt = counts && starts === '' ? seen.at : undefined
  const at = barrierAt ?? ((observedAt ?? Infinity) <= now ? observedAt : undefined)
  const grade = at === undefined ? undefined : barrierAt === undefined ? 'observed' : 'barrier'
  const gone = gateway.vanishedAt === undefined ? '' : 'its pod is gone, and was not seen to end'
  const weak = grade === 'observed' ? [gone, entry.why] : [gone, entry.why, starts || seen.why]
  const why = doubt || weak.filter(why => why !== '').join('; ')
  return {
    report: {
      name: gateway.name,
      grade,
      at,
      sealedAt: counts && entry.sealed ? barrier?.sealedAt : undefined,
      idleAt: barrierAt === undefined ? undefined : barrier?.idleAt,
      why: grade === 'barrier' ? '' : why
    },
    barrierAt,
    observedAt,
    contrary: entry.state === 'busy' ? entry.why : entry.state !== 'idle' && seen.undecided ? seen.why : '',
    sealed: counts && entry.sealed,
    waitsUntil: entry.waitsForLong ? longLivedUntil : undefined
  }
}

/**
 * `unusable`: the barrier has never reported on this drain, so weaker grades may replace it. `busy`: requests may still reach the pod, or
 * the barrier reported before and cannot be used now. `idle`: proven.
 */
interface Entry {
  readonly state: 'unusable' | 'busy' | 'idle'
  readonly sealed: boolean
  readonly why: string
  /** Only long-lived requests are in flight, and the pod asks to wait for them. */
  readonly waitsForLong?: boolean
}

/**
 * The state of the barrier's entry. A bypass (a request that got the node because there was no other) is in flight, so 0 in flight
 * after the seal covers it.
 */
function entryOf(
  barrier: BarrierReading | undefined,
  unsealed: string,
  since: Millis,
  waitsForLong: boolean
): Entry {
  const busy = (why: string, sealed: boolean): Entry => ({ state: 'busy', sealed, why })
  const unusable = (why: string): Entry =>
    barrier?.binding
      ? busy(`${why} (it has answered for this drain, so only its own 0 in flight counts)`, false)
      : { state: 'unusable', sealed: false, why }
  if (barrier === undefined) return unusable('no barrier was read')
  if (barrier.problem !== '') return unusable(barrier.problem)
  if (!barrier.fit) return unusable('the barrier does not fit this APISIX')

  const sealed = barrier.entry === 'sealed'
  const { requests, long } = barrier.inflight
  if (barrier.at < since || barrier.entry === 'absent') return busy('its barrier has no entry yet', false)
  // This reason goes first, because it may last, whereas requests in flight end.
  if (!sealed && unsealed !== '') return busy(`not sealed: ${unsealed}`, false)
  if (requests > 0)
    return busy(`${requests} in flight${countOf(long) === 0 ? '' : `, and ${longLivedWords(long)}`}`, sealed)
  if (waitsForLong && countOf(long) > 0)
    return { ...busy(`waits for ${longLivedWords(long)}`, sealed), waitsForLong }
  if (!sealed) return busy('the entry is not sealed yet', false)
  if (!barrier.readAfterSeal) return busy('in flight was not read after the seal yet', true)
  return { state: 'idle', sealed, why: '' }
}

/**
 * The settle time runs from the first clean read, because later reads can only confirm the first and must not delay the answer.
 * `undecided`: a read showed the node, or there are too few clean reads yet. One worker may have dropped the node while another has not. So
 * no weaker grade replaces `observed` while reads still succeed.
 */
function observationOf(
  observation: Observation | undefined,
  settings: ProofSettings
): { readonly at: Millis | undefined; readonly undecided: boolean; readonly why: string } {
  const none = { at: undefined, undecided: false }
  if (observation === undefined) return { ...none, why: 'its Control API was not read' }
  const { problem, stillListed, cleanReads } = observation
  if (problem !== '') return { ...none, undecided: stillListed, why: problem }
  if (stillListed) return { ...none, undecided: true, why: 'it still lists the node' }
  if (cleanReads < settings.reads) {
    const why = `${cleanReads} of ${settings.reads} clean reads`
    return { ...none, undecided: true, why }
  }
  const at = plus(observation.firstCleanAt, settings.observedSettleMs)
  return { at, undecided: false, why: 'the settle time is running' }
}
