import type { BarrierReading, Evidence } from './evidence.ts'
import { longLivedWords, countOf, type GatewayReport, type Idle } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'

/** What the barrier of one gateway shows about one drain. */
interface Assessment {
  readonly report: GatewayReport
  readonly sealed: boolean
  /** The end of the wait for long-lived requests, if nothing else is in flight. */
  readonly waitsUntil: Millis | undefined
}

/** A report that proves a drain at its gateway. */
type SealedIdle = BarrierReading & {
  readonly problem: ''
  readonly fit: true
  readonly entry: 'sealed'
  readonly readAfterSeal: true
  readonly inflight: { readonly requests: 0 }
}

/**
 * A bypass (a request that got the node because there was no other) is in flight, so 0 in flight after the seal covers it. State from before
 * the drain proves nothing.
 */
const isIdle = (barrier: BarrierReading, since: Millis): barrier is SealedIdle =>
  barrier.problem === '' &&
  barrier.fit &&
  barrier.at >= since &&
  barrier.entry === 'sealed' &&
  barrier.readAfterSeal &&
  barrier.inflight.requests === 0

const idle = (name: string, { unchangedSince: at, sealedAt, idleAt }: SealedIdle): Idle => ({
  name,
  grade: 'barrier',
  at,
  sealedAt,
  idleAt,
  why: ''
})

/** @param longLivedUntil until when the drain waits for long-lived requests, in ms */
export function assess(
  { gateway: { name, vanishedAt }, barrier, doubt, unsealed }: Evidence['gateways'][number],
  since: Millis,
  now: Millis,
  longLivedUntil: Millis
): Assessment {
  const waitsForLong = barrier !== undefined && now < longLivedUntil && countOf(barrier.inflight.long) > 0
  if (doubt === '' && barrier && !waitsForLong && isIdle(barrier, since))
    return { report: idle(name, barrier), sealed: true, waitsUntil: undefined }
  const entry = stateOf(barrier, unsealed, since)
  const sealed = doubt === '' && entry.sealed
  const waits = waitsForLong && entry.why === '' ? `waits for ${longLivedWords(barrier.inflight.long)}` : ''
  const gone = vanishedAt === undefined ? '' : 'its pod is gone, and was not seen to end'
  return {
    report: {
      name,
      grade: undefined,
      at: undefined,
      sealedAt: sealed ? barrier?.sealedAt : undefined,
      why: doubt || [gone, entry.why || waits].filter(why => why !== '').join('; ')
    },
    sealed,
    waitsUntil: waits === '' ? undefined : longLivedUntil
  }
}

/** Whether the barrier's entry is sealed, and what is missing besides; an empty `why`: nothing, apart from long-lived requests. */
function stateOf(
  barrier: BarrierReading | undefined,
  unsealed: string,
  since: Millis
): { readonly sealed: boolean; readonly why: string } {
  if (barrier === undefined) return { sealed: false, why: 'no barrier was read' }
  if (barrier.problem !== '') return { sealed: false, why: barrier.problem }
  if (!barrier.fit) return { sealed: false, why: 'the barrier does not fit this APISIX' }
  const sealed = barrier.entry === 'sealed'
  const { requests, long } = barrier.inflight
  if (barrier.at < since || barrier.entry === 'absent')
    return { sealed: false, why: 'its barrier has no entry yet' }
  // This reason goes first, because it may last, whereas requests in flight end.
  if (!sealed && unsealed !== '') return { sealed, why: `not sealed: ${unsealed}` }
  if (requests > 0)
    return {
      sealed,
      why: `${requests} in flight${countOf(long) === 0 ? '' : `, and ${longLivedWords(long)}`}`
    }
  if (!sealed) return { sealed, why: 'the entry is not sealed yet' }
  return { sealed, why: barrier.readAfterSeal ? '' : 'in flight was not read after the seal yet' }
}
