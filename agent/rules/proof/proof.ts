import { readOptions } from '../drain/annotations.ts'
import {
  countOf,
  longLivedWords,
  type Drain,
  type GatewayReport,
  type Idle,
  type Verdict
} from '../drain/drain.ts'
import { type Millis, type NodeKey, earliest, latest } from '../drain/facts.ts'
import {
  LOAD_IT,
  allOf,
  gatewayObstacles,
  listed,
  longLivedOf,
  verdictOf,
  type Evidence,
  type ProofSettings,
  type BarrierReading,
  type Word
} from './verdict.ts'

/**
 * The verdict on a drain by the barriers: every gateway has sealed the pod, and then counted 0 ordinary requests in flight. Lists in the
 * Admin API do not count, even if the pod is the last node of one: the seal rests on the workers' words.
 */
export function prove(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'pod'>,
  now: Millis,
  settings: Pick<ProofSettings, 'longLivedMs'>
): Verdict {
  const { longLivedMs = settings.longLivedMs } = readOptions(drain.pod.annotations)
  const assessed = evidence.gateways.map(one => assess(one, drain.since, now, drain.since + longLivedMs))
  const gateways = assessed.map(({ report }) => report)
  const idle = allOf(gateways, isIdle)
  const isSilent = evidence.gateways.some(({ silent }) => silent)
  const isOpen = evidence.gateways.some(({ barrier }) => barrier && leavesL4(barrier))
  const nothing = longLivedOf(evidence) ? 'no other request' : 'nothing'
  return verdictOf(evidence, drain, now, {
    gateways,
    proof: idle && { grade: 'barrier', gateways: idle },
    reached: `every gateway (${gateways.length}) has sealed it and ${nothing} is in flight${evidence.sealForced ? FORCED : ''}`,
    places: placesOf(evidence),
    barred: assessed.length > 0 && assessed.every(({ sealed }) => sealed),
    obstacles: idle ? [] : gatewayObstacles(gateways),
    vain: isSilent || isOpen ? 'soon' : undefined,
    change: isOpen ? COVER_L4 : isSilent ? LOAD_IT : undefined,
    until: earliest(assessed.map(({ waitsUntil }) => waitsUntil))
  })
}

const isIdle = (report: GatewayReport): report is Idle => report.grade === 'barrier'

/** Whether L4 is on and not covered: a stream route may lead to the pod, and nobody counts its sessions. It may only be starting. */
const leavesL4 = ({ word }: BarrierReading): boolean => word?.l4 === false
export const COVER_L4 =
  'let the plugin cover TCP (docs/long-lived.md, L4), turn stream mode off, or give the pods a sleep instead of the hook'

/** The answer must state what happens to the last requests. */
const FORCED =
  '; no other pod could take over in time, so a gateway that knew no other node answers 503 since the seal'

/** By the words: some places may have dropped the pod since. A place that a worker cannot see counts. `undefined` without all words. */
function placesOf({ gateways, holders, tookOver }: Evidence): number | undefined {
  const counted = latest(
    gateways.map(({ barrier: { word } = {} }) => (word?.complete ? word.places + word.hidden : undefined))
  )
  return counted === undefined ? undefined : Math.max(counted, holders.length, Number(tookOver))
}

/**
 * Whether nothing that the agent knows leads to the pod. An inventory that is newer than the pod's end does not list the pod, no hidden
 * place may lead to it, and no gateway has shown a sign of it. This is no proof, because a gateway that did not answer may have an older
 * configuration.
 */
export const isUnlisted = ({ holders, isAbsent, hiddenBy, notLiteral, gateways }: Evidence): boolean =>
  holders.length === 0 &&
  notLiteral === undefined &&
  isAbsent &&
  hiddenBy.length === 0 &&
  gateways.every(
    ({ observation, barrier }) =>
      !observation?.stillListed &&
      (barrier === undefined ||
        (barrier.inflight.requests === 0 &&
          countOf(barrier.inflight.long) === 0 &&
          (barrier.word?.places ?? 0) === 0))
  )

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
  readonly word: Word
}

/**
 * A bypass (a request that got the node because there was no other) is in flight, so 0 in flight after the seal covers it. State from before
 * the drain proves nothing.
 */
const hasEnded = (barrier: BarrierReading, since: Millis): barrier is SealedIdle =>
  barrier.problem === '' &&
  barrier.fit &&
  !leavesL4(barrier) &&
  barrier.at >= since &&
  barrier.entry === 'sealed' &&
  barrier.readAfterSeal &&
  barrier.word?.complete === true &&
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
function assess(
  { gateway: { name, vanishedAt }, barrier, doubt, unsealed }: Evidence['gateways'][number],
  since: Millis,
  now: Millis,
  longLivedUntil: Millis
): Assessment {
  const waitsForLong = barrier !== undefined && now < longLivedUntil && countOf(barrier.inflight.long) > 0
  if (doubt === '' && barrier && !waitsForLong && hasEnded(barrier, since))
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
  if (leavesL4(barrier)) return { sealed: false, why: 'L4 is on and not covered' }
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
  if (!barrier.readAfterSeal) return { sealed, why: 'in flight was not read after the seal yet' }
  return { sealed, why: barrier.word?.complete ? '' : 'its workers have not reported since the seal' }
}

/** The places in workers' words that no longer delay a pod's seal. */
export interface LetGo {
  /** Whether the seal may ignore this place, in which no other node is left. `named`: how many such places the words name. */
  place(name: string, named: number): boolean
  /** Whether all places in which only these nodes are left belong to other namespaces. */
  others(nodes: readonly NodeKey[]): boolean
  /** Whether the places that words leave out belong to other namespaces only. */
  readonly cut: boolean
}

/** No place is let go: every place without another node delays the seal. */
export const HOLD_ALL: LetGo = { place: () => false, others: () => false, cut: false }

/** The result of `judge`: the words that allow a seal, or the reason against it. */
export type Judged =
  /** The tags of the judged words. The gateway seals only if its workers still report these words. */
  | { readonly tags: readonly string[] }
  /** `isLast`: the workers would choose nothing else. */
  | { readonly why: string; readonly isLast?: true }

/**
 * Whether a gateway may seal an entry. A sealed node is never chosen, even if it is the last one of its place. So three things must hold
 * (docs/decisions/0037). Every worker has reported, which a frozen worker does not. No worker has a place in which no other node
 * is left. Every place has another node that may serve according to Kubernetes. A place that the words leave out may lack such a node, so
 * no gateway seals by words that leave places out. Places that are let go do not count (docs/decisions/0057).
 *
 * @param serves whether the node, `address:port`, may serve according to Kubernetes
 */
export function judge(word: Word, serves: (node: string) => boolean, letGo: LetGo = HOLD_ALL): Judged {
  const { complete, said, asked, others, cut, tags } = word
  const sole = word.sole.filter(place => !letGo.place(place, word.sole.length))
  if (!complete) return { why: `${said} of ${asked} workers have said what they could choose instead` }
  if (sole.length > 0) return { why: `nothing else is left in ${listed(sole)}`, isLast: true }
  const bad = others.find(({ nodes, more }) => more === 0 && !nodes.some(serves) && !letGo.others(nodes))
  if (!bad && cut > 0 && !letGo.cut)
    return { why: `the words of its workers leave out what is left in ${cut} more places` }
  return bad ? { why: `what is left does not serve: ${listed(bad.nodes)}`, isLast: true } : { tags }
}
