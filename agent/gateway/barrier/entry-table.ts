import type { BarrierAnswer, BarrierState } from '../apisix/barrier-wire.ts'
import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import {
  entriesOf,
  hasSuccessors,
  sameList,
  sameNodes,
  samePut,
  successorsOf,
  type DesiredEntry
} from './desired-entry.ts'
import { forgotten, readingOf, saysTheSame, unanswered, type Receipt } from './barrier-reading.ts'
import type { BarrierReading } from '../../rules/proof/verdict.ts'

/** What agents tell each other by the entries: how they have answered the hooks. */
export interface ToldAnswers {
  readonly own: ReadonlyMap<PodUid, { readonly at: Millis; readonly text: string }>
  read(list: readonly BarrierState[], askedAt: Millis): void
}

type Answer = Pick<BarrierAnswer, 'entries'>
type PutReceipt = Omit<Receipt, 'afterSeal'>
interface PutAnswer extends Answer {
  readonly refused: ReadonlySet<string>
  /** Why entries were refused. */
  readonly why: string
  readonly sentAt: Millis
}

interface Stored {
  readonly entry: DesiredEntry
  /** When the put was sent. The ttl in the gateway begins a little later. */
  readonly sentAt: Millis
  readonly storedAt: Millis
  /** The gateway answered that the entry is sealed, so all later counts are from after the seal. */
  readonly sealed: boolean
  /** The dictionary had no room for the entry. The entry is not polled until it is put again. */
  readonly refused: boolean
  /** The put had the answer of the pod's hook, or the dictionary had no room. */
  readonly isComplete: boolean
}

/** The wait before an entry is put again after the dictionary had no room for it, in ms. */
const FULL_MS = 2000
/** How long an answer waits to join another put, in ms, so that no seal waits for a put with an answer alone. */
const TELL_MS = 500

/**
 * The entries that one gateway should hold, the entries put there, and the gateway's reports. It does no I/O and reads no clock.
 *
 * @param ttlMs how long the gateway keeps an entry that is not put again
 * @param desired the entries by uid, as they should be now
 */
export function createEntryTable(
  ttlMs: number,
  desired: () => ReadonlyMap<PodUid, DesiredEntry>,
  now: Millis,
  answers: ToldAnswers['own'] = new Map()
) {
  const stored = new Map<PodUid, Stored>()
  /** Each uid whose entries this gateway may hold, and until when. The map survives failures, because these entries must be removed. */
  const held = new Map<PodUid, { readonly until: Millis; readonly stop: string | undefined }>()
  /** The uids of `held` for which the gateway may hold successors that this agent named. */
  const followed = new Set<PodUid>()
  /** The successors that the gateway's entries name, as last read: another agent may have named them, and be blind by now. */
  const named = new Map<PodUid, readonly NodeKey[]>()
  /** The entries for which the gateway names a successor whose address is another pod's. */
  let taken = new Set<PodUid>()
  const readings = new Map<PodUid, BarrierReading>()
  let movedAt = now

  const isFrozen = (uid: PodUid): boolean => desired().get(uid)?.frozen === true
  const isSealed = ({ uid }: DesiredEntry): boolean => readings.get(uid)?.entry === 'sealed'
  /** Whether the gateway would seal by its last words. It refuses while workers take in a change, and they may say the same again soon. */
  const maySeal = (entry: DesiredEntry): boolean =>
    !!entry.sealIf && !isSealed(entry) && sameList(entry.sealIf, readings.get(entry.uid)?.word?.tags)
  const isOld = (uid: PodUid, at: Millis): boolean => at >= (stored.get(uid)?.sentAt ?? Infinity) + ttlMs / 3
  const isTaken = ({ uid }: DesiredEntry): boolean => taken.has(uid)

  const release = (uid: PodUid): void => {
    held.delete(uid)
    followed.delete(uid)
  }

  /** The entries to put now; see `due`. */
  const dueAt = (at: Millis): readonly DesiredEntry[] => {
    const isDue = (entry: DesiredEntry): boolean => {
      if (entry.frozen) return false
      const known = stored.get(entry.uid)
      if (!known || isOld(entry.uid, at) || isTaken(entry) || (!known.refused && maySeal(entry))) return true
      return !samePut(known.entry, entry, isSealed(entry))
    }
    const due = [...desired().values()].filter(isDue)
    const late = incomplete()
    return due.length > 0 || late.some(entry => at >= tellAt(entry)) ? [...new Set([...due, ...late])] : []
  }
  const tellAt = ({ uid }: DesiredEntry): Millis => (answers.get(uid)?.at ?? Infinity) + TELL_MS
  const lacks = ({ uid, frozen }: DesiredEntry): boolean =>
    !frozen && answers.has(uid) && stored.get(uid)?.isComplete === false
  const incomplete = (): readonly DesiredEntry[] => [...desired().values()].filter(lacks)

  const take = (entry: DesiredEntry, states: ReturnType<typeof byUid>, receipt: Receipt): boolean => {
    if (!desired().has(entry.uid)) return false
    const before = readings.get(entry.uid)
    const reading = readingOf(entry, states.get(entry.uid) ?? [], receipt, before)
    readings.set(entry.uid, reading)
    if (before && saysTheSame(before, reading)) return false
    movedAt = receipt.at
    return true
  }

  const findTaken = (): boolean => {
    const found = [...desired().values()].filter(
      ({ uid, isTaken = () => false, frozen }) => !frozen && named.get(uid)?.some(isTaken)
    )
    taken = new Set(found.map(({ uid }) => uid))
    return taken.size > 0
  }
  const isBusy = ({ uid }: DesiredEntry): boolean => (readings.get(uid)?.inflight.requests ?? 0) > 0
  /** Until an entry is sealed, requests continue, and the agent needs the workers' words about it. */
  const isPolled = (entry: DesiredEntry): boolean => stored.get(entry.uid)?.sealed === true && isBusy(entry)

  return {
    /** Entries to put now: new, changed, a third of their ttl old, or sealed and naming a successor that must go or that no other one names. */
    due: dueAt,
    /** The entries of `due` that have lost an address since their last put. They are removed first, because a put removes no address. */
    shrunk: (due: readonly DesiredEntry[]) =>
      due.filter(({ uid, nodes }) => stored.get(uid)?.entry.nodes.some(node => !nodes.includes(node))),
    /**
     * Whether a put has the field `successors`. An empty one removes what another agent named, and this agent may only be late to see it. So an
     * empty one is sent only after this agent has named some, if the address of one is another pod's, or with a renewal if there are none.
     */
    tellsSuccessors: (entry: DesiredEntry, at: Millis) =>
      hasSuccessors(entry) ||
      followed.has(entry.uid) ||
      isTaken(entry) ||
      (entry.successors !== undefined && isOld(entry.uid, at)),
    /** Uids whose entries the gateway holds and that are not desired any more. */
    over(at: Millis) {
      for (const [uid, { until }] of held) if (until <= at) release(uid)
      return [...held.keys()].filter(uid => !desired().has(uid))
    },
    /** The stops of containers of which the gateway holds entries, by uid. */
    stops: (uids: readonly PodUid[]): Readonly<Record<string, string | undefined>> =>
      Object.fromEntries(uids.map(uid => [uid, held.get(uid)?.stop])),
    /** When the first entry must be put again; `Infinity` without entries. */
    renewAt: () =>
      Math.min(
        ...stored.entries().map(([uid, { sentAt }]) => (isFrozen(uid) ? Infinity : sentAt + ttlMs / 3)),
        ...incomplete().map(tellAt)
      ),
    /** Stored entries with `watch`. `polled`: only entries for a long poll (sealed, requests in flight). Not `polled`: all others. */
    watched: (polled: boolean) =>
      [...desired().values()].filter(
        entry => entry.watch && stored.get(entry.uid)?.refused === false && isPolled(entry) === polled
      ),
    /** Whether an answer of this agent is not in the gateway yet. */
    isUntold: () => incomplete().length > 0,
    isBusy,
    /** When a report last differed from the previous one, or the desired entries changed. */
    movedAt: () => movedAt,
    reading(uid: PodUid): BarrierReading | undefined {
      const [put, now] = [stored.get(uid)?.entry, desired().get(uid)]
      // A report on fewer addresses says nothing about the others.
      return put && now && !sameNodes(put, now) ? undefined : readings.get(uid)
    },
    /** The desired entries have changed. */
    changed(at: Millis) {
      for (const uid of readings.keys()) if (!desired().has(uid)) readings.delete(uid)
      movedAt = at
    },
    /** A put was sent, or the gateway holds or may have fetched these entries. */
    sent(entries: readonly Pick<DesiredEntry, 'uid' | 'stop' | 'successors'>[], at: Millis) {
      for (const entry of entries) {
        held.set(entry.uid, { until: at + ttlMs, stop: entry.stop?.text })
        if (hasSuccessors(entry)) followed.add(entry.uid)
        named.delete(entry.uid)
      }
    },
    /** The gateway answered that put. `isStale`: the gateway may have been restarted meanwhile, so all entries must be put again. */
    put(entries: readonly DesiredEntry[], answer: PutAnswer, receipt: PutReceipt, isStale: boolean) {
      const states = byUid(answer)
      for (const entry of entries) {
        const { uid } = entry
        const refused = answer.refused.has(uid)
        held.set(uid, { until: receipt.at + ttlMs, stop: entry.stop?.text })
        taken.delete(uid)
        if (isStale) continue
        if (!hasSuccessors(entry)) followed.delete(uid)
        const sameWays = sameList(stored.get(uid)?.entry.ways, entry.ways)
        take(entry, states, { ...receipt, afterSeal: true, sameWays })
        const sentAt = refused ? answer.sentAt - ttlMs / 3 + FULL_MS : answer.sentAt
        const isComplete = refused || (answers.get(uid)?.at ?? Infinity) < answer.sentAt
        stored.set(uid, { entry, sentAt, storedAt: receipt.at, sealed: isSealed(entry), refused, isComplete })
        if (refused) readings.set(uid, unanswered(readings.get(uid), receipt.at, answer.why))
      }
    },
    /** The gateway answered a question about requests in flight, asked at `askedAt`. Returns whether it says something new. */
    reported(entries: readonly DesiredEntry[], answer: Answer, receipt: PutReceipt, askedAt: Millis) {
      const states = byUid(answer)
      let isNews = false
      for (const { uid } of entries) {
        const known = stored.get(uid)
        // The entry was put again during this request, and the answer to that put is newer than this answer.
        if (!known || known.storedAt > askedAt) continue
        if (take(known.entry, states, { ...receipt, afterSeal: known.sealed })) isNews = true
        const { entry } = readings.get(uid) ?? {}
        if (entry === 'absent') stored.delete(uid)
        // Another agent has sealed the entry meanwhile, so every later report is from after the seal.
        else if (entry === 'sealed' && !known.sealed) stored.set(uid, { ...known, sealed: true })
      }
      return isNews
    },
    lifted(uids: readonly PodUid[]) {
      for (const uid of uids) {
        stored.delete(uid)
        release(uid)
      }
    },
    /** The gateway no longer holds any entry, unless it has fetched some since. */
    restarted(instance: string) {
      stored.clear()
      followed.clear()
      for (const [uid, reading] of readings)
        if (reading.binding) readings.set(uid, forgotten(reading, instance))
        else readings.delete(uid)
    },
    /** The gateway may have been restarted. All entries are put again. Entries that it may still hold are removed as usual. */
    forget: () => stored.clear(),
    /** The gateway did not answer. */
    failed(why: string, at: Millis) {
      stored.clear()
      for (const uid of desired().keys()) readings.set(uid, unanswered(readings.get(uid), at, why))
    },
    /** Takes the gateway's list of its entries. `true`: some entries are not as this agent has put them, and are due again. */
    compare(list: readonly BarrierState[], askedAt: Millis): boolean {
      const states = Map.groupBy(list, ({ uid }) => uid)
      let differs = false
      named.clear()
      for (const [uid, found] of states) named.set(uid as PodUid, found.flatMap(successorsOf))
      for (const [uid, known] of stored) {
        // What was put after the question may be missing in the answer.
        if (known.refused || known.storedAt > askedAt || !desired().has(uid) || isFrozen(uid)) continue
        if (isHeld(known, states.get(uid) ?? [])) continue
        stored.delete(uid)
        differs = true
      }
      return findTaken() || differs
    },
    /** Looks whether the gateway names a successor whose address is another pod's by now. */
    findTaken
  }
}

/** Whether the gateway holds every address of the entry, and sealed if it was. */
const isHeld = ({ entry, sealed }: Stored, found: readonly BarrierState[]): boolean =>
  entriesOf(entry).every(({ ip, port }) =>
    found.some(state => state.ip === ip && state.port === port && (state.state === 'sealed' || !sealed))
  )

/** The entries of an answer by uid, because one answer may have hundreds of entries. */
const byUid = ({ entries }: Answer) => Map.groupBy(entries, ({ uid }) => uid)
