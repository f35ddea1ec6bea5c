import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { BarrierEntry, BarrierGateway, BarrierState } from '../apisix/barrier-api.ts'
import { addressOf } from '../apisix/nodes.ts'
import type { BarrierReading } from './evidence.ts'
import { OLDER_PLUGIN } from './seal.ts'
import { wordOf } from './word.ts'

/** What the deny-list of one gateway should hold for one drain. */
export interface DesiredEntry {
  readonly uid: PodUid
  /** Bare hosts, or hosts with ports where the pod shares its host's address. */
  readonly nodes: readonly NodeKey[]
  readonly state: 'draining' | 'sealed'
  /** Sealed only where the words with these tags still stand, one for each node. Left out: in any case. */
  readonly sealIf?: readonly string[]
  /** A hook still waits for it: it is polled, and after its seal long-polled while requests are in flight. */
  readonly watch: boolean
}

/** What the deny-list of every gateway should hold for one drain. */
export interface DesiredDrain extends Omit<DesiredEntry, 'sealIf'> {
  /**
   * With `sealed`: by gateway, the tags of the words that let it be sealed there. Where a gateway is not named the entry stays draining.
   * Left out: sealed everywhere, whatever the workers say.
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

/** What is put for them is the same. */
export const samePut = (a: DesiredEntry, b: DesiredEntry): boolean =>
  a.state === b.state && sameNodes(a, b) && sameList(a.sealIf, b.sealIf)

/** One entry per address. */
export function entriesOf({ uid, nodes, state, sealIf }: DesiredEntry, ttlMs: number): BarrierEntry[] {
  const ttl = Math.ceil(ttlMs / 1000)
  return nodes.map((node, i) => {
    const { host, port } = addressOf(node)
    const tag = sealIf?.[i]
    return {
      uid,
      ip: host,
      ...(port === undefined ? {} : { port }),
      state,
      ttl,
      ...(tag !== undefined && { sealIf: tag })
    }
  })
}

/** The circumstances of an answer. */
export interface Told {
  readonly at: Millis
  /** When the gateway counted, on our clock: at most `at`. */
  readonly countedAt: Millis
  readonly instance: string
  readonly fit: boolean
  /** The request began after the seal, or made it: its count is the fourth step of the guarantee. */
  readonly afterSeal: boolean
}

/**
 * What an answer says of one drain: its addresses together are as far as the one that is least so. `before`: what was
 * known of it until then.
 */
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
  const inflight = { requests: sum(s => s.inflight.requests), long: sum(s => s.inflight.long) }
  const word = wordOf(states.map(s => s?.word))
  // An older plugin reports no words. That matters only until its entry is sealed, by another agent or at the deadline.
  const isOlder = entry === 'draining' && word === undefined
  const says = !isOlder && entry !== 'absent' && (told.fit || inflight.requests + inflight.long > 0)
  const reading = {
    at: told.at,
    unchangedSince: told.countedAt,
    instance: told.instance,
    fit: told.fit,
    entry,
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
 * Which of the entries that a gateway should hold it may have lost. Where it tells only how many it holds, and these are too few, it
 * may be any of them.
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

/** Whether two readings differ in nothing but when they were read. */
export function saysTheSame(a: BarrierReading, b: BarrierReading): boolean {
  const said = (r: BarrierReading) =>
    [
      r.instance,
      r.fit,
      r.entry,
      r.inflight.requests,
      r.inflight.long,
      r.word?.tags,
      r.word?.said,
      r.word?.asked,
      r.readAfterSeal,
      r.problem
    ].join(' ')
  return said(a) === said(b)
}

/** What a gateway that could not be asked says: what it said last, if anything, with the reason. It proves nothing. */
export function unanswered(last: BarrierReading | undefined, at: Millis, problem: string): BarrierReading {
  const nothing = {
    at,
    unchangedSince: at,
    instance: '',
    fit: false,
    entry: 'absent',
    word: undefined,
    late: 0,
    readAfterSeal: false,
    binding: false
  } as const
  return { ...(last ?? { ...nothing, inflight: { requests: 0, long: 0 } }), problem }
}

/**
 * What is left of a reading when the gateway answers as another instance: its entries are gone, and whatever it has not told yet is
 * to come from the new one. Its requests ended with a full restart, but a binary that is replaced (USR2) serves on beside it.
 */
export const forgotten = (last: BarrierReading, instance: string): BarrierReading => ({
  ...last,
  instance,
  entry: 'absent',
  word: undefined,
  readAfterSeal: false,
  problem: ''
})
