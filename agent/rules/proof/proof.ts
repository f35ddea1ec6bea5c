import { readOptions } from '../drain/annotations.ts'
import type { Drain, Grade, HolderReport, Verdict } from '../drain/drain.ts'
import { formatDuration } from '../drain/duration.ts'
import { longLivedWords, countOf, together, type LongLived } from '../drain/long-lived.ts'
import type { Millis } from '../drain/facts.ts'
import { GRADES, atLeast } from '../drain/drain.ts'
import type { HiddenPlace } from '../plan/hidden.ts'
import type { Evidence, ProofSettings } from './evidence.ts'
import { isNowhere } from './word.ts'
import { earliest, latest, plus } from '../drain/times.ts'
import { assess, type Assessment } from './gateway-proof.ts'

/**
 * The verdict on a drain. Each grade holds from some time on (`undefined`: these facts do not support it). The best grade that holds is
 * taken if it reaches the pod's own minimum (annotation), or else the configured one. There are two more conditions:
 * - No holder keeps the node as its last one, or every gateway has sealed it (`barrier`). Until then the drain waits for a replacement.
 * - No gateway is known to send requests still. A weaker grade cannot outweigh this, because it only shows that time has passed.
 * In a dry run the agent writes nothing, but a proof can still be true, because another writer may remove the node.
 */
export function prove(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'deadline' | 'pod' | 'witnesses'>,
  now: Millis,
  settings: ProofSettings
): Verdict {
  const options = readOptions(drain.pod.annotations)
  const longLivedUntil = drain.since + (options.longLivedMs ?? settings.longLivedMs)
  const assessed = evidence.gateways.map(gateway =>
    assess(gateway, drain.since, now, settings, longLivedUntil)
  )
  const hidden = evidence.hiddenBy
  const holds = capped(gradesOf(evidence, assessed, drain.since, settings), hidden)
  const grade = GRADES.find(grade => (holds[grade] ?? Infinity) <= now)
  const minimum = options.minimumGrade ?? settings.minimumGrade
  const lastEndpoint = evidence.holders.some(holder => holder.state === 'kept-last')
  const contrary = assessed.some(one => one.contrary !== '')
  const gateways = assessed.map(one => one.report)
  const holders = [
    ...evidence.holders.map(({ key, state, why }): HolderReport => ({ key, state, why })),
    ...hidden
      .filter(({ holder }) => !evidence.holders.some(({ key }) => key === holder))
      .map(({ holder, why }): HolderReport => ({ key: holder, state: 'foreign', why }))
  ]
  const longLived = longLivedOf(evidence)
  const obstacles = [...hidden.map(nameOfHidden), ...obstaclesTo(grade, evidence, assessed)]
  const told = evidence.gateways.some(({ gateway }) => gateway.byHand) ? `; ${BY_HAND}` : ''

  // A hidden place whose best grade is `timer` never allows a better one, so the drain does not wait.
  const blind = hidden.find(({ best }) => best === 'timer')
  // After a seal by the workers' words, the drain does not wait for another node: the words outweigh the list in the Admin API.
  const isEnough =
    grade !== undefined &&
    (atLeast(grade, minimum) || blind !== undefined) &&
    (!lastEndpoint || grade === 'barrier') &&
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
      ...(longLived && { longLived }),
      at: now,
      why: [
        sentence(reached(grade, evidence, settings), obstacles),
        succeededWords(evidence.succeeded),
        leftWords(longLived),
        told
      ].join(''),
      gateways,
      holders
    }
  }
  const vain = inVainFrom(evidence, drain)
  const isVain = vain !== undefined && vain <= now
  const better = GRADES.slice(0, grade === undefined ? GRADES.length : GRADES.indexOf(grade))
  const until = Math.min(
    ...better.map(grade => holds[grade] ?? Infinity),
    ...assessed.map(one => one.waitsUntil ?? Infinity),
    vain ?? Infinity
  )
  return {
    kind: 'waiting',
    grade,
    lastEndpoint,
    barred: isComplete(evidence) && hidden.length === 0 && assessed.every(one => one.sealed),
    floorOver: isEnough || isVain,
    ...(isVain && { change: LOAD_IT }),
    ...(blind && { change: blind.change }),
    ...(longLived && { longLived }),
    until: until === Infinity ? undefined : until,
    why:
      (isEnough
        ? sentence(reached('timer', evidence, settings), obstacles)
        : waitingFor(grade, minimum, obstacles)) + told,
    gateways,
    holders
  }
}

/** How long a deletion, or the first report of a barrier, may take to show, in ms. */
const SHOWN_MS = 2000
const LOAD_IT = 'load the plugin in every gateway: it keeps requests away while the node is listed'

/**
 * From when on nothing can be proved any more, because a node stays listed where no gateway has a barrier: its pod may stay, or the next
 * pod has the same address, and nobody would add the node again. `undefined`: something can.
 */
function inVainFrom(
  { gateways, holders }: Evidence,
  { since, witnesses: { deletion, deleted } }: Pick<Drain, 'since' | 'witnesses'>
): Millis | undefined {
  const isListed = holders.some(({ state }) => state !== 'removed')
  if (!isListed || gateways.some(({ barrier }) => barrier !== undefined)) return undefined
  const mayStay = deletion === undefined && deleted === undefined
  return mayStay || holders.some(({ stays }) => stays) ? since + SHOWN_MS : undefined
}

/** The time from which each grade holds for the whole drain. */
function gradesOf(
  evidence: Evidence,
  assessed: readonly Assessment[],
  since: Millis,
  settings: ProofSettings
): Readonly<Record<Grade, Millis | undefined>> {
  const complete = isComplete(evidence)
  const accepted = latest(acceptances(evidence, since))
  const takenOut = latest(acceptances(evidence, since, 'discovery too'))
  const observable = evidence.holders.every(holder => holder.observable)
  return {
    barrier: complete ? latest(assessed.map(one => one.barrierAt)) : undefined,
    observed:
      complete && observable
        ? latest([
            ...assessed.map(one => earliest([one.barrierAt, one.observedAt])),
            plus(takenOut, settings.observedSettleMs)
          ])
        : undefined,
    // An inventory from before the drain may lack a holder that still lists the pod.
    accepted:
      (evidence.inventoryAt ?? -Infinity) >= since ? plus(accepted, settings.acceptedSettleMs) : undefined,
    timer: since + settings.floorMs
  }
}

/**
 * Whether nothing that the agent knows leads to the pod. An inventory that is newer than the pod's end does not list the pod, no hidden
 * place may lead to it, and no gateway has shown a sign of it. This is no proof, because a gateway that did not answer may have an older
 * configuration.
 */
export const isUnlisted = ({ holders, absentSince, hiddenBy, gateways }: Evidence): boolean =>
  holders.length === 0 &&
  absentSince !== undefined &&
  hiddenBy.length === 0 &&
  gateways.every(
    ({ observation, barrier }) =>
      !observation?.stillListed &&
      (barrier === undefined ||
        (barrier.inflight.requests === 0 &&
          countOf(barrier.inflight.long) === 0 &&
          (barrier.word?.places ?? 0) === 0))
  )

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
 * When each holder dropped the node. Without holders: the time of the first inventory that showed no holder. A holder that the agent cannot
 * write has no accepted removal. With `foreign`, the start of the drain counts for such a holder, because gateways can be observed.
 */
function acceptances(evidence: Evidence, since: Millis, foreign?: 'discovery too'): (Millis | undefined)[] {
  if (evidence.holders.length === 0) return [evidence.absentSince]
  return evidence.holders.map(holder => {
    if (holder.state === 'removed') return holder.acceptedAt
    return holder.state === 'foreign' && foreign ? since : undefined
  })
}

/** Whether the list has every gateway that may serve. An empty list proves nothing: the agent just sees no gateway. */
const isComplete = (evidence: Evidence): boolean => evidence.gatewaysKnown && evidence.gateways.length > 0

/** The reasons against a better grade, or against the end of the drain; the most important first. */
function obstaclesTo(
  grade: Grade | undefined,
  evidence: Evidence,
  assessed: readonly Assessment[]
): string[] {
  const holders = evidence.holders.flatMap(({ key, state, why, observable, letGo }) => {
    if (state !== 'removed')
      return grade === 'barrier' && state !== 'kept-last' && !letGo ? [] : [`${key}: ${why || state}`]
    return observable || grade === 'barrier' ? [] : [`${key}: the Control API does not show it`]
  })
  if (grade === 'barrier') return holders
  const inventory = evidence.inventoryProblem === '' ? [] : [evidence.inventoryProblem]
  return [...holders, ...inventory, ...gatewayObstacles(evidence, assessed)]
}

function gatewayObstacles(evidence: Evidence, assessed: readonly Assessment[]): string[] {
  if (!evidence.gatewaysKnown) return ['the gateways are not known yet']
  if (assessed.length === 0) return ['no gateway is known']
  return assessed
    .filter(({ report }) => report.grade !== 'barrier')
    .map(({ report, contrary }) => `${report.name}: ${contrary || report.why}`)
}

const succeededWords = (places: readonly string[]): string =>
  places.length === 0 ? '' : `; no other node is left in ${listed(places)}: its successors get these requests`

const leftWords = (longLived: LongLived | undefined): string =>
  longLived ? `; left for the pod to end at SIGTERM: ${longLivedWords(longLived)}` : ''

/** The long-lived requests by the last count of each gateway; `undefined` if there are none. */
function longLivedOf({ gateways }: Evidence): LongLived | undefined {
  const longLived = together(gateways.flatMap(({ barrier }) => barrier?.inflight.long ?? []))
  return countOf(longLived) === 0 ? undefined : longLived
}

/** The answer must state what happens to the last requests. */
const FORCED =
  '; the deadline forced the seal, so a gateway that knew no other node answered 503 for the last moments'

function reached(grade: Grade, evidence: Evidence, settings: ProofSettings): string {
  const { gateways, holders, sealForced } = evidence
  const told = {
    barrier: `every gateway (${gateways.length}) has sealed it and ${longLivedOf(evidence) ? 'no other request' : 'nothing'} is in flight${sealForced ? FORCED : ''}`,
    observed: `every gateway (${gateways.length}) was seen without it in ${settings.reads} reads, which is a sample`,
    accepted: `out of every holder (${holders.length}), but the gateways did not confirm`,
    timer: `nothing could be proved, held for ${formatDuration(settings.floorMs)}`
  } satisfies Record<Grade, string>
  return told[grade]
}

/** The watch of a selector is complete, but a list in a file may be out of date. */
const BY_HAND = 'the gateways are listed by hand: a gateway that is missing from the list was not asked'

/** The observation behind each grade, for answers that need a better one. */
const SO_FAR: Readonly<Record<Grade, string>> = {
  barrier: 'every gateway has sealed it',
  observed: 'every gateway was seen without it',
  accepted: 'no holder lists it any more',
  timer: 'only time has passed'
}

const waitingFor = (grade: Grade | undefined, minimum: Grade, obstacles: readonly string[]): string =>
  sentence(
    grade === undefined || atLeast(grade, minimum)
      ? 'waiting'
      : `${SO_FAR[grade]}, but evidence "${minimum}" is required`,
    obstacles
  )

const sentence = (start: string, reasons: readonly string[]): string =>
  reasons.length === 0 ? start : `${start} (${listed(reasons)})`

/** Names at most three; the reports have all of them. */
const listed = (all: readonly string[]): string =>
  all.slice(0, 3).join(', ') + (all.length > 3 ? `, and ${all.length - 3} more` : '')
