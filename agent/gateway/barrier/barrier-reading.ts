import type { Millis } from '../../rules/drain/facts.ts'
import type { BarrierState, WorkersWord } from '../apisix/barrier-wire.ts'
import type { BarrierReading, Word } from '../../rules/proof/verdict.ts'
import { countOf, together, type LongLived } from '../../rules/drain/drain.ts'
import { addressOf } from '../apisix/holders.ts'
import { entriesOf, sameList, type DesiredEntry } from './desired-entry.ts'

/** When an answer came, and from which instance. */
export interface Receipt {
  readonly at: Millis
  readonly instance: string
  readonly fit: boolean
  /** The request was sent after the seal, or it made the seal. Its count is then step 4 of the guarantee (docs/how-it-works.md). */
  readonly afterSeal: boolean
  /** The request is a put that asks for the same ways as the put before. */
  readonly sameWays?: boolean
}

/** The reading for one drain, from one answer. If its addresses differ, the least advanced decides. `before`: the previous reading. */
export function readingOf(
  wanted: DesiredEntry,
  answered: readonly BarrierState[],
  receipt: Receipt,
  before: BarrierReading | undefined
): BarrierReading {
  const states = entriesOf(wanted).map(e =>
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
  const said = wordOf(
    states.map(s => s?.word),
    wanted.ways?.length
  )
  // The gateway has sealed by these very words, and its workers speak anew after that: no answer waits for them.
  const isBySeal = receipt.sameWays && entry === 'sealed' && before?.entry === 'draining' && wanted.sealIf
  const word = isBySeal && said && sameList(wanted.sealIf, before.word?.tags) ? before.word : said
  const says = entry !== 'absent' && (receipt.fit || inflight.requests + countOf(inflight.long) > 0)
  const reading = {
    at: receipt.at,
    unchangedSince: receipt.at,
    instance: receipt.instance,
    fit: receipt.fit,
    entry,
    ...agesOf(entry, present, receipt, before),
    inflight,
    word,
    late: sum(s => s.late),
    readAfterSeal: receipt.afterSeal && entry === 'sealed',
    binding: says || before?.binding === true,
    problem: ''
  } as const
  return before && saysTheSame(before, reading)
    ? { ...reading, unchangedSince: before.unchangedSince }
    : reading
}

/**
 * When the entry was sealed and when the last request finished, from the ages that the gateway reports. An answer takes a moment to arrive, so
 * both may be late, never early. A worker that died leaves no time, so `idleAt` is never before the last report of a request in flight.
 */
function agesOf(
  entry: BarrierReading['entry'],
  states: readonly BarrierState[],
  { at: receivedAt }: Receipt,
  before: BarrierReading | undefined
): Pick<BarrierReading, 'sealedAt' | 'idleAt'> {
  if (entry !== 'sealed') return { sealedAt: undefined, idleAt: undefined }
  const at = (age: number | undefined) => receivedAt - (age ?? 0) * 1000
  const sealedAt = before?.sealedAt ?? Math.max(...states.map(({ sealedFor }) => at(sealedFor)))
  if (states.some(({ inflight }) => inflight.requests > 0)) return { sealedAt, idleAt: undefined }
  const busyAt = before && before.inflight.requests > 0 ? before.at : -Infinity
  const idleAt = Math.max(busyAt, ...states.map(({ idleFor }) => at(idleFor)))
  return { sealedAt, idleAt: before?.idleAt ?? idleAt }
}

const longLivedIn = ({
  upgraded = 0,
  sse = 0,
  streams = 0,
  oldest = 0
}: BarrierState['inflight']): LongLived => ({
  upgraded,
  sse,
  streams,
  oldestMs: Math.round(oldest * 1000)
})

/** Whether two readings report the same, apart from their times. */
export function saysTheSame(a: BarrierReading, b: BarrierReading): boolean {
  const counts = ({ inflight: { requests, long } }: BarrierReading) =>
    [requests, long.upgraded, long.sse, long.streams].join()
  const word = ({ word }: BarrierReading) => [word?.tags, word?.said, word?.asked].join()
  const outline = (r: BarrierReading) =>
    [r.instance, r.fit, r.entry, counts(r), word(r), r.readAfterSeal, r.problem].join(' ')
  return outline(a) === outline(b)
}

/** The reading of a gateway that did not answer: its last report, if any, with the reason in `problem`. Such a reading proves nothing. */
export function unanswered(last: BarrierReading | undefined, at: Millis, problem: string): BarrierReading {
  const nothing = {
    at,
    unchangedSince: at,
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
 * The reading once another instance has answered for this gateway. The entries are gone, and only the new instance can report more.
 * The count in flight stays: a full restart ends the requests, but after a binary upgrade (USR2) the old processes still serve.
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

/**
 * Merges the words about all addresses of a pod; `undefined` if the word about one of them is missing.
 * @param asked how many questions the first one must answer
 */
export function wordOf(words: readonly (WorkersWord | undefined)[], asked = 0): Word | undefined {
  const given = words.filter(word => word !== undefined)
  if (given.length === 0 || given.length < words.length) return undefined
  const tags = given.flatMap(({ tag, said, asked }) => (tag !== undefined && said === asked ? [tag] : []))
  const complete = tags.length === given.length && (given[0]?.ways.asked ?? 0) >= asked
  return {
    complete,
    said: Math.min(...given.map(({ said }) => said)),
    asked: Math.max(...given.map(({ asked }) => asked)),
    places: given.reduce((sum, { places }) => sum + places, 0),
    hidden: Math.max(...given.map(({ hidden }) => hidden)),
    sole: [...new Set(given.flatMap(({ sole }) => sole))],
    succeeded: [...new Set(given.flatMap(({ succeeded }) => succeeded))],
    others: given.flatMap(({ others }) => others),
    cut: given.reduce((sum, { cut }) => sum + cut, 0),
    tags: complete ? tags : [],
    found: given.flatMap(({ ways }) => ways.found.map(one => ({ ...one, ...addressOf(one.node) }))),
    more: given.reduce((sum, { ways }) => sum + ways.more, 0),
    l4: given.every(({ l4 }) => l4 !== false)
  }
}

/** In ms. The pause is the time since the last change divided by `share`, within the other values, and at least `each` per entry. */
const POLL_MS = { shortest: 20, busy: 50, longest: 500, share: 20, each: 0.2 }

/**
 * The pause before the next poll of entries, in ms. `unchangedFor`: since a report or the desired entries last changed. Long answers cost CPU
 * on both sides. While requests are in flight (`busy`), reports change all the time: no reason to poll more often.
 */
export function pollPause(entries: number, busy: boolean, unchangedFor: number): number {
  const shortest = Math.max(busy ? POLL_MS.busy : POLL_MS.shortest, entries * POLL_MS.each)
  return Math.max(shortest, Math.min(POLL_MS.longest, unchangedFor / POLL_MS.share))
}
