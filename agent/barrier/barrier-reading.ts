import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { BarrierEntry, BarrierGateway, BarrierState } from '../apisix/barrier-wire.ts'
import type { Successors } from '../plan/successors.ts'
import { addressOf } from '../apisix/nodes.ts'
import type { BarrierReading } from './evidence.ts'
import { OLDER_PLUGIN } from './seal.ts'
import { numberOf, together, type LongLived } from '../drain/long-lived.ts'
import { wordOf } from './word.ts'

/** The entry that the deny-list of one gateway should hold for one drain. */
export interface DesiredEntry {
  readonly uid: PodUid
  /** Bare hosts, or hosts with ports if the pod shares its host's address. */
  readonly nodes: readonly NodeKey[]
  readonly state: 'draining' | 'sealed'
  /** Seal only if the words with these tags still stand, one for each node. Absent: seal in any case. */
  readonly sealIf?: readonly string[]
  /** The nodes that take over, by port. The same object until something changes. */
  readonly successors?: Successors
  /** The pod keeps the sessions that are bound to it until then, on the agent's clock. Only with `draining`. */
  readonly keepUntil?: Millis
  /** A hook still waits for it. It is polled, and after its seal long-polled while requests are in flight. */
  readonly watch: boolean
}

/** The entry that the deny-list of every gateway should hold for one drain. */
export interface DesiredDrain extends Omit<DesiredEntry, 'sealIf'> {
  /**
   * With `sealed`: by gateway, the tags of the words that allow the seal there. On a gateway without tags, the entry stays
   * draining. Absent: sealed everywhere, whatever the workers report.
   */
  readonly agreed?: ReadonlyMap<string, readonly string[]>
}

/** A drain's entry as one gateway should hold it. */
export function entryAt({ agreed, ...drain }: DesiredDrain, gatewayId: string): DesiredEntry {
  if (!agreed) return drain
  const sealIf = agreed.get(gatewayId)
  return sealIf ? { ...drain, sealIf } : { ...drain, state: 'draining' }
}

const sameList = (a: readonly string[] = [], b: readonly string[] = []): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])

export const sameNodes = (
  { nodes: a }: Pick<DesiredEntry, 'nodes'>,
  { nodes: b }: Pick<DesiredEntry, 'nodes'>
): boolean => sameList(a, b)

/** Whether both entries would be put in the same way. */
export const samePut = (a: DesiredEntry, b: DesiredEntry): boolean =>
  a.state === b.state &&
  a.keepUntil === b.keepUntil &&
  sameNodes(a, b) &&
  sameList(a.sealIf, b.sealIf) &&
  a.successors === b.successors

/** The optional fields that the plugin knows. */
interface Extras {
  readonly successors?: boolean
  /** The name of this release, if the plugin keeps it. */
  readonly by?: string | undefined
  /** The present, if the plugin keeps sessions. */
  readonly keepFrom?: Millis | undefined
}

/** One entry for each address. */
export function entriesOf(
  { uid, nodes, state, sealIf, successors, keepUntil }: DesiredEntry,
  ttlMs: number,
  extras: Extras = {}
): BarrierEntry[] {
  const ttl = Math.ceil(ttlMs / 1000)
  const keep = keepSeconds(keepUntil, extras.keepFrom)
  return nodes.map((node, i) => {
    const { host, port } = addressOf(node)
    const tag = sealIf?.[i]
    return {
      uid,
      ip: host,
      ...(port === undefined ? {} : { port }),
      state,
      ttl,
      ...(tag !== undefined && { sealIf: tag }),
      ...(extras.successors && successors && { successors: ofFamily(successors, host) }),
      ...(extras.by !== undefined && { by: extras.by }),
      ...(keep !== undefined && { keep })
    }
  })
}

/** The longest time that the plugin keeps sessions without another put, in s. */
const MOST_KEPT = 3600

const keepSeconds = (until: Millis | undefined, now: Millis | undefined): number | undefined =>
  until === undefined || now === undefined ? undefined : Math.min(MOST_KEPT, Math.max(0, until - now) / 1000)

/** Whether it has fields that only some plugins know. */
export const hasExtras = ({ successors = {}, keepUntil }: DesiredEntry): boolean =>
  Object.keys(successors).length > 0 || keepUntil !== undefined

/** A gateway may have only one address family, so an address gets successors of its own family. */
const ofFamily = (successors: Successors, host: string): Successors =>
  Object.fromEntries(
    Object.entries(successors).map(([port, nodes]) => [
      port,
      nodes.filter(node => node.startsWith('[') === host.includes(':'))
    ])
  )

/** The circumstances of an answer. */
export interface Told {
  readonly at: Millis
  /** When the gateway counted, on the agent's clock: at most `at`. */
  readonly countedAt: Millis
  readonly instance: string
  readonly fit: boolean
  /** The request began after the seal, or made it. Its count is then the fourth step of the guarantee. */
  readonly afterSeal: boolean
}

/** The content of an answer for one drain. The least advanced of its addresses decides. `before`: the previous reading. */
export function readingOf(
  wanted: DesiredEntry,
  answered: readonly BarrierState[],
  told: Told,
  before: BarrierReading | undefined
): BarrierReading {
  const states = entriesOf(wanted, 0).map(e =>
    answered.find(s => s.uid === e.uid && s.ip === e.ip && s.port === e.port)
  )
  const present = states.filter(s => s !== undefined)
  const sum = (of: (state: BarrierState) => number) => present.reduce((total, state) => total + of(state), 0)
  const entry =
    present.length < states.length || present.length === 0
      ? 'absent'
      : present.every(s => s.state === 'sealed')
        ? 'sealed'
        : 'draining'
  const inflight = {
    requests: sum(s => s.inflight.requests),
    long: together(present.map(({ inflight }) => longLivedIn(inflight)))
  }
  const word = wordOf(states.map(s => s?.word))
  // An older plugin reports no words. That matters only until its entry is sealed, by another agent or at the deadline.
  const isOlder = entry === 'draining' && word === undefined
  const says = !isOlder && entry !== 'absent' && (told.fit || inflight.requests + numberOf(inflight.long) > 0)
  const reading = {
    at: told.at,
    countedAt: told.countedAt,
    unchangedSince: told.countedAt,
    instance: told.instance,
    fit: told.fit,
    entry,
    ...agesOf(entry, present, told, before),
    inflight,
    word,
    late: sum(s => s.late ?? 0),
    readAfterSeal: told.afterSeal && entry === 'sealed',
    binding: says || before?.binding === true,
    problem: isOlder ? OLDER_PLUGIN : ''
  } as const
  return before && saysTheSame(before, reading)
    ? { ...reading, unchangedSince: before.unchangedSince }
    : reading
}

/**
 * The gateway's own times of the seal and of the last finished request. They do not depend on when the agent asks. A worker that died
 * leaves no time of its requests, so none is earlier than the last report of a request in flight.
 */
function agesOf(
  entry: BarrierReading['entry'],
  states: readonly BarrierState[],
  { countedAt }: Told,
  before: BarrierReading | undefined
): Pick<BarrierReading, 'sealedAt' | 'idleAt'> {
  if (entry !== 'sealed') return { sealedAt: undefined, idleAt: undefined }
  const at = (age: number | undefined) => countedAt - (age ?? 0) * 1000
  const sealedAt = before?.sealedAt ?? Math.max(...states.map(({ sealedFor }) => at(sealedFor)))
  if (states.some(({ inflight }) => inflight.requests > 0)) return { sealedAt, idleAt: undefined }
  const busyAt = before && before.inflight.requests > 0 ? before.countedAt : -Infinity
  const idleAt = Math.max(busyAt, ...states.map(({ idleFor }) => at(idleFor)))
  return { sealedAt, idleAt: before?.idleAt ?? idleAt }
}

/** An older plugin names no kinds: it counts upgraded connections as long-lived, and nothing else. */
const longLivedIn = ({
  long,
  upgraded = long,
  sse = 0,
  streams = 0,
  oldest = 0
}: BarrierState['inflight']): LongLived => ({
  upgraded,
  sse,
  streams,
  oldestMs: Math.round(oldest * 1000)
})

/**
 * The entries that a gateway should hold and may have lost. If it reports only a number of entries, and that is too low, any of
 * them may be lost.
 */
export function missingOf(
  wanted: readonly DesiredEntry[],
  { entries, held }: Pick<BarrierGateway, 'entries' | 'held'>
): readonly DesiredEntry[] {
  if (held !== undefined) {
    const addresses = new Set(wanted.flatMap(({ uid, nodes }) => nodes.map(node => `${uid} ${node}`)))
    return held.entries < addresses.size ? wanted : []
  }
  if (entries === undefined) return []
  const byPod = Map.groupBy(entries, ({ uid }) => uid)
  return wanted.filter(entry => !isHeld(entry, byPod.get(entry.uid) ?? []))
}

const isHeld = (entry: DesiredEntry, told: readonly BarrierState[]): boolean =>
  entriesOf(entry, 0).every(({ ip, port, state }) =>
    told.some(s => s.ip === ip && s.port === port && (s.state === 'sealed' || state === 'draining'))
  )

/** Whether two readings report the same, apart from their times. */
export function saysTheSame(a: BarrierReading, b: BarrierReading): boolean {
  const said = (r: BarrierReading) =>
    [
      r.instance,
      r.fit,
      r.entry,
      r.inflight.requests,
      r.inflight.long.upgraded,
      r.inflight.long.sse,
      r.inflight.long.streams,
      r.word?.tags,
      r.word?.said,
      r.word?.asked,
      r.readAfterSeal,
      r.problem
    ].join(' ')
  return said(a) === said(b)
}

/** The reading of a gateway that could not be asked: its last report, if any, with the reason. It proves nothing. */
export function unanswered(last: BarrierReading | undefined, at: Millis, problem: string): BarrierReading {
  const nothing = {
    at,
    unchangedSince: at,
    countedAt: at,
    sealedAt: undefined,
    idleAt: undefined,
    instance: '',
    fit: false,
    entry: 'absent',
    word: undefined,
    late: 0,
    readAfterSeal: false,
    binding: false
  } as const
  return { ...(last ?? { ...nothing, inflight: { requests: 0, long: together([]) } }), problem }
}

/**
 * A reading after the gateway answered as another instance. Its entries are gone, and only the new instance can report more. The
 * count in flight stays. A full restart ends the requests, but after a binary upgrade (USR2) the old processes still serve.
 */
export const forgotten = (last: BarrierReading, instance: string): BarrierReading => ({
  ...last,
  instance,
  entry: 'absent',
  sealedAt: undefined,
  idleAt: undefined,
  word: undefined,
  readAfterSeal: false,
  problem: ''
})
