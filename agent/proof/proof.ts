import { readOptions } from '../drain/annotations.ts'
import type { Drain, GatewayReport, Grade, HolderReport, Verdict } from '../drain/drain.ts'
import { formatDuration } from '../drain/duration.ts'
import type { Millis } from '../drain/facts.ts'
import { GRADES, atLeast } from '../drain/drain.ts'
import type { HiddenPlace } from '../plan/hidden.ts'
import { standbyWords } from '../plan/standby.ts'
import type { BarrierReading, Evidence, Observation, ProofSettings } from '../barrier/evidence.ts'
import { isNowhere } from '../barrier/word.ts'
import { latest } from '../drain/times.ts'

type GatewayEvidence = Evidence['gateways'][number]

/** The evidence of one gateway: the time from which each grade holds there, and the reason that keeps it from a better grade. */
interface Look {
  readonly report: GatewayReport
  readonly barrierAt: Millis | undefined
  readonly observedAt: Millis | undefined
  /** Why requests may still reach the pod through this gateway, which rules out a weaker grade; or empty. */
  readonly contrary: string
  readonly sealed: boolean
}

/**
 * The verdict on a drain. Each grade holds from some time on (`undefined`: these facts do not support it). The best grade that holds
 * is taken if it reaches the pod's own minimum (annotation), or else the configured one, and if
 * - no holder keeps the node as its last one, or the workers' words allowed the seal (`barrier`, not forced). Otherwise the drain waits
 *   for a replacement until its deadline;
 * - no gateway is known to still send requests. A weaker grade only shows that time has passed, so it cannot outweigh that.
 * A dry run writes nothing, but a proof in it is true: another writer removed the node.
 */
export function prove(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'deadline' | 'pod'>,
  now: Millis,
  settings: ProofSettings
): Verdict {
  const looks = evidence.gateways.map(gateway => assess(gateway, drain.since, now, settings))
  const hidden = evidence.hiddenBy
  const holds = capped(gradesOf(evidence, looks, drain.since, settings), hidden)
  const grade = GRADES.find(grade => (holds[grade] ?? Infinity) <= now)
  const minimum = readOptions(drain.pod.annotations).minimumGrade ?? settings.minimumGrade
  const lastEndpoint = evidence.holders.some(holder => holder.state === 'kept-last')
  const contrary = looks.some(look => look.contrary !== '')
  const gateways = looks.map(look => look.report)
  const holders = [
    ...evidence.holders.map(({ key, state, why }): HolderReport => ({ key, state, why })),
    ...hidden
      .filter(({ holder }) => !evidence.holders.some(({ key }) => key === holder))
      .map(({ holder, why }): HolderReport => ({ key: holder, state: 'foreign', why }))
  ]
  const obstacles = [...hidden.map(nameOfHidden), ...obstaclesTo(grade, evidence, looks)]
  const told = evidence.gateways.some(({ gateway }) => gateway.byHand) ? `; ${BY_HAND}` : ''

  // A hidden place with the best grade `timer` never gives a better one, so the drain does not wait for one.
  const blind = hidden.find(({ best }) => best === 'timer')
  // A seal by the workers' words allows the last node to go: their places outweigh the Admin API's listing.
  const isEnough =
    grade !== undefined &&
    (atLeast(grade, minimum) || blind !== undefined) &&
    (!lastEndpoint || (grade === 'barrier' && !evidence.sealForced)) &&
    !contrary
  if (isEnough && grade !== 'timer') {
    const isUnlisted = evidence.holders.length === 0 && evidence.absentSince !== undefined
    const isNotRouted =
      isUnlisted &&
      (grade !== 'barrier' || evidence.gateways.every(({ barrier }) => isNowhere(barrier?.word)))
    return {
      kind: 'proven',
      result: isNotRouted ? 'not-routed' : grade === 'barrier' ? 'drained' : 'removed',
      grade,
      forced: evidence.sealForced,
      succeeded: evidence.succeeded,
      at: now,
      why: [
        sentence(reached(grade, evidence, settings), obstacles),
        standbyWords(evidence.standbys),
        succeededWords(evidence.succeeded),
        told
      ].join(''),
      gateways,
      holders
    }
  }
  const better = GRADES.slice(0, grade === undefined ? GRADES.length : GRADES.indexOf(grade))
  const until = Math.min(...better.map(grade => holds[grade] ?? Infinity))
  return {
    kind: 'waiting',
    grade,
    lastEndpoint,
    barred: isComplete(evidence) && hidden.length === 0 && looks.every(look => look.sealed),
    contrary,
    floorOver: isEnough,
    ...(blind && { change: blind.change }),
    until: until === Infinity ? undefined : until,
    why:
      (isEnough
        ? sentence(reached('timer', evidence, settings), obstacles)
        : waitingFor(grade, minimum, obstacles)) + told,
    gateways,
    holders
  }
}

/** The time from which each grade holds for the whole drain. */
function gradesOf(
  evidence: Evidence,
  looks: readonly Look[],
  since: Millis,
  settings: ProofSettings
): Readonly<Record<Grade, Millis | undefined>> {
  const complete = isComplete(evidence)
  const accepted = latest(acceptances(evidence, since))
  const takenOut = latest(acceptances(evidence, since, 'discovery too'))
  const observable = evidence.holders.every(holder => holder.observable)
  return {
    barrier: complete ? latest(looks.map(look => look.barrierAt)) : undefined,
    observed:
      complete && observable
        ? latest([
            ...looks.map(look => earliest([look.barrierAt, look.observedAt])),
            plus(takenOut, settings.observedSettleMs)
          ])
        : undefined,
    // An inventory from before the drain may lack a holder, so a removal may still be missing.
    accepted:
      (evidence.inventoryAt ?? -Infinity) >= since ? plus(accepted, settings.acceptedSettleMs) : undefined,
    timer: since + settings.floorMs
  }
}

/** Drops the grades that hidden places rule out. */
function capped(
  holds: Readonly<Record<Grade, Millis | undefined>>,
  hidden: readonly HiddenPlace[]
): Readonly<Record<Grade, Millis | undefined>> {
  const covers = (grade: Grade) => hidden.every(({ best }) => atLeast(best, grade))
  const kept = GRADES.map(grade => [grade, covers(grade) ? holds[grade] : undefined])
  return Object.fromEntries(kept) as Record<Grade, Millis | undefined>
}

const nameOfHidden = ({ holder, why }: HiddenPlace): string => `${holder}: ${why}`

/**
 * When each holder dropped the node. If no holder lists it: the time of the first inventory that showed this. The agent cannot write
 * discovery holders, so nothing is accepted there, but their gateways can be observed.
 */
function acceptances(evidence: Evidence, since: Millis, foreign?: 'discovery too'): (Millis | undefined)[] {
  if (evidence.holders.length === 0) return [evidence.absentSince]
  return evidence.holders.map(holder => {
    if (holder.state === 'removed') return holder.acceptedAt
    return holder.state === 'foreign' && foreign ? since : undefined
  })
}

/** The list has every gateway that may serve. An empty list proves nothing: it only means that the agent sees none. */
const isComplete = (evidence: Evidence): boolean => evidence.gatewaysKnown && evidence.gateways.length > 0

function assess(
  { gateway, barrier, observation, doubt, unsealed }: GatewayEvidence,
  since: Millis,
  now: Millis,
  settings: ProofSettings
): Look {
  // A Terminating gateway is not Ready but still serves, so it must confirm. Any other gateway that is not Ready is starting or
  // broken, and its reports do not count.
  const silenced = gateway.ready || gateway.terminating ? doubt : 'not Ready, so nothing that it says counts'
  const counts = silenced === ''
  const entry = entryOf(barrier, unsealed, since)
  const seen = observationOf(observation, settings)
  const barrierAt = counts && entry.state === 'idle' ? barrier?.unchangedSince : undefined
  const observedAt = counts ? seen.at : undefined
  const at = barrierAt ?? ((observedAt ?? Infinity) <= now ? observedAt : undefined)
  const grade = at === undefined ? undefined : barrierAt === undefined ? 'observed' : 'barrier'
  const gone = gateway.vanishedAt === undefined ? '' : 'its pod is gone, and was not seen to end'
  const weak = grade === 'observed' ? [gone, entry.why] : [gone, entry.why, seen.why]
  const why = silenced || weak.filter(why => why !== '').join('; ')
  return {
    report: {
      name: gateway.name,
      grade,
      at,
      sealedAt: counts && entry.sealed ? barrier?.sealedAt : undefined,
      why: grade === 'barrier' ? '' : why
    },
    barrierAt,
    observedAt,
    contrary: entry.state === 'busy' ? entry.why : entry.state !== 'idle' && seen.undecided ? seen.why : '',
    sealed: counts && entry.sealed
  }
}

/**
 * `unusable`: it has never reported on this drain, so weaker grades may stand in. `busy`: requests may still reach the pod, or
 * its barrier reported before and cannot be used now. `idle`: proven.
 */
interface Entry {
  readonly state: 'unusable' | 'busy' | 'idle'
  readonly sealed: boolean
  readonly why: string
}

/**
 * The state of the barrier's entry. A bypass (a request that got the node because no other was left) is in flight, so 0 in flight after
 * the seal covers it.
 */
function entryOf(barrier: BarrierReading | undefined, unsealed: string, since: Millis): Entry {
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
  // Reported first, because it may last; requests in flight end.
  if (!sealed && unsealed !== '') return busy(`not sealed: ${unsealed}`, false)
  if (requests + long > 0) return busy(`${requests + long} in flight (${long} long-lived)`, sealed)
  if (!sealed) return busy('the entry is not sealed yet', false)
  if (!barrier.readAfterSeal) return busy('in flight was not read after the seal yet', true)
  return { state: 'idle', sealed, why: '' }
}

/**
 * The settle time runs from the first clean read: later ones can only confirm, and must not delay the answer.
 * `undecided`: a read showed the node, or there are too few clean reads yet. One worker may have dropped it while
 * another has not, so no weaker grade stands in while reads still succeed.
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

/** The reasons against a better grade, or against the end of the drain; the most important first. */
function obstaclesTo(grade: Grade | undefined, evidence: Evidence, looks: readonly Look[]): string[] {
  const holders = evidence.holders.flatMap(({ key, state, why, observable }) => {
    if (state !== 'removed')
      return grade === 'barrier' && state !== 'kept-last' ? [] : [`${key}: ${why || state}`]
    return observable || grade === 'barrier' ? [] : [`${key}: the Control API does not show it`]
  })
  if (grade === 'barrier') return holders
  const inventory = evidence.inventoryProblem === '' ? [] : [evidence.inventoryProblem]
  return [...holders, ...inventory, ...gatewayObstacles(evidence, looks)]
}

function gatewayObstacles(evidence: Evidence, looks: readonly Look[]): string[] {
  if (!evidence.gatewaysKnown) return ['the gateways are not known yet']
  if (looks.length === 0) return ['no gateway is known']
  return looks
    .filter(({ report }) => report.grade !== 'barrier')
    .map(({ report, contrary }) => `${report.name}: ${contrary || report.why}`)
}

const succeededWords = (places: readonly string[]): string =>
  places.length === 0 ? '' : `; no other node is left in ${listed(places)}: its successors get these requests`

/** P19: the answer must state what the last requests got. */
const FORCED =
  '; the deadline forced the seal, so a gateway that knew no other node answered 503 for the last moments'

function reached(grade: Grade, { gateways, holders, sealForced }: Evidence, settings: ProofSettings): string {
  const told = {
    barrier: `every gateway (${gateways.length}) has sealed it and nothing is in flight${sealForced ? FORCED : ''}`,
    observed: `every gateway (${gateways.length}) was seen without it in ${settings.reads} reads, which is a sample`,
    accepted: `out of every holder (${holders.length}), but the gateways did not confirm`,
    timer: `nothing could be proved, held for ${formatDuration(settings.floorMs)}`
  } satisfies Record<Grade, string>
  return told[grade]
}

/** The watch of a selector is complete. A list in a file may be out of date. */
const BY_HAND = 'the gateways are listed by hand: a gateway that is missing from the list was not asked'

const waitingFor = (grade: Grade | undefined, minimum: Grade, obstacles: readonly string[]): string =>
  sentence(
    grade === undefined || atLeast(grade, minimum) ? 'waiting' : `${grade} is below ${minimum}`,
    obstacles
  )

const sentence = (start: string, reasons: readonly string[]): string =>
  reasons.length === 0 ? start : `${start} (${listed(reasons)})`

/** Names at most three; the reports have all of them. */
const listed = (all: readonly string[]): string =>
  all.slice(0, 3).join(', ') + (all.length > 3 ? `, and ${all.length - 3} more` : '')

const plus = (at: Millis | undefined, ms: number): Millis | undefined =>
  at === undefined ? undefined : at + ms

/** The earliest defined time. */
function earliest(some: readonly (Millis | undefined)[]): Millis | undefined {
  const known = some.filter(at => at !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
