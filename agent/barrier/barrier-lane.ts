import type { Logger } from 'pino'

import type { Clock } from '../base/clock.ts'
import type { Millis, PodUid } from '../drain/facts.ts'
import type { BarrierAnswer, BarrierApi, BarrierGateway } from '../apisix/barrier-api.ts'
import { createBell } from './bell.ts'
import type { GatewayClock } from './gateway-clock.ts'
import type { Identity } from './identity.ts'
import { lookPause } from './look-pause.ts'
import {
  entriesOf,
  forgotten,
  missingOf,
  readingOf,
  sameNodes,
  samePut,
  saysTheSame,
  unanswered,
  type DesiredEntry,
  type Told
} from './barrier-reading.ts'
import type { BarrierReading } from './evidence.ts'
import { doubled } from '../drain/times.ts'

/** One gateway's share of the keeper: nothing that happens here delays another gateway. */
export interface BarrierLane {
  /** What is desired has changed. */
  readonly look: () => void
  /** What the gateway says that it holds. Whatever it should hold and does not is put again at once. */
  readonly compare: (told: Pick<BarrierGateway, 'entries' | 'held'>, askedAt: Millis) => void
  /** The gateway may have been restarted: tell it everything again. */
  readonly again: () => void
  readonly reading: (uid: PodUid) => BarrierReading | undefined
  stop(): Promise<void>
}

interface BarrierLaneOptions {
  readonly api: BarrierApi
  readonly clock: Clock
  readonly gatewayClock: GatewayClock
  readonly identity: Identity
  readonly log: Logger
  readonly ttlMs: number
  readonly desired: () => ReadonlyMap<PodUid, DesiredEntry>
  /** Entries are desired by what is known now; else nothing is put. What is held may be lifted at any time. */
  readonly mayPut: () => boolean
  readonly tell: () => void
}

interface Stored {
  readonly entry: DesiredEntry
  /** When the put was sent: its ttl runs from a little later on. */
  readonly sentAt: Millis
  readonly storedAt: Millis
  /** It answered that it is sealed: what is counted from then on is counted after the seal. */
  readonly sealed: boolean
  /** There was no room for it: nothing is to be asked of it until it is put again. */
  readonly refused: boolean
}

const BACK_OFF_MS = { first: 50, longest: 2000 }
/** Before an entry for which the dictionary had no room is put again, in ms. */
const FULL_MS = 2000
/** A long poll; ended earlier by the gateway as soon as there is something to say. */
const WAIT_SECONDS = 5
/** Asked in one long poll, which answers for the first of them; entries beyond that are polled. */
const MOST_POLLED = 1000

/**
 * Three loops in one function, because they share the stored entries and the readings, and none of them may see half of a change that
 * another makes.
 */
export function createBarrierLane({
  api,
  clock,
  gatewayClock,
  identity,
  log,
  ttlMs,
  desired,
  mayPut,
  tell
}: BarrierLaneOptions): BarrierLane {
  const stored = new Map<PodUid, Stored>()
  /** Every uid that this gateway may hold an entry of, until when. Survives failures: what is held must be lifted. */
  const held = new Map<PodUid, Millis>()
  const readings = new Map<PodUid, BarrierReading>()
  const ended = new AbortController()
  const bell = createBell()
  /** Rung when a gateway may have come (back): it must not serve without its entries for the rest of a pause. */
  const urgent = createBell()
  let instance: string | undefined
  let isSeveral = false
  let failures = 0
  let restarts = 0
  let movedAt = clock.now()
  let poll: { readonly about: string; readonly abort: AbortController } | undefined

  const isDue = (entry: DesiredEntry, now: Millis): boolean => {
    const known = stored.get(entry.uid)
    if (!known || now >= known.sentAt + ttlMs / 3) return true
    // Sealed there by another agent: nothing that is put changes it any more.
    if (readings.get(entry.uid)?.entry === 'sealed' && sameNodes(known.entry, entry)) return false
    return known.entry !== entry && !samePut(known.entry, entry)
  }

  /** Resolves at the bell, or at `at`. */
  const pause = async (at = Infinity): Promise<void> => {
    if (ended.signal.aborted) return
    const cancel = at === Infinity ? () => {} : clock.alarm(at, bell.ring)
    await bell.heard()
    cancel()
  }

  const heardFrom = (
    answer: { readonly instance: string; readonly fit?: boolean },
    askedAt: Millis
  ): void => {
    identity.note(answer, askedAt, clock.now(), false)
    if (failures > 0) log.info('barrier answers again')
    failures = 0
    // Several gateways at one address are no restarts, and an entry that one of them has is worth nothing.
    if (identity.isSeveral()) {
      if (!isSeveral)
        log.warn({ why: identity.doubt() }, 'this is not one gateway: nothing that it says counts')
      isSeveral = true
    } else if (instance !== undefined && instance !== answer.instance) {
      log.warn('gateway has restarted and forgotten its barrier entries: all are put again')
      stored.clear()
      held.clear()
      for (const [uid, reading] of readings) {
        if (reading.binding) readings.set(uid, forgotten(reading, answer.instance))
        else readings.delete(uid)
      }
    }
    instance = answer.instance
  }

  const failed = (error: unknown): void => {
    if (failures++ === 0) log.warn({ err: error }, 'barrier cannot be reached')
    // It may have been restarted: whatever it has stored is put again when it answers.
    stored.clear()
    for (const uid of desired().keys())
      readings.set(uid, unanswered(readings.get(uid), clock.now(), (error as Error).message))
    // Wakes the pusher, which goes on trying; the others wait for it to get through.
    bell.ring()
    tell()
  }

  const push = async (due: readonly DesiredEntry[]): Promise<void> => {
    const sentAt = clock.now()
    const asked = restarts
    for (const { uid } of due) held.set(uid, sentAt + ttlMs)
    const answer = await api.put(
      due.flatMap(entry => entriesOf(entry, ttlMs)),
      ended.signal
    )
    heardFrom(answer, sentAt)
    const told = toldBy(answer, sentAt)
    const states = byUid(answer)
    for (const entry of due) {
      const full = answer.refused.has(entry.uid)
      held.set(entry.uid, clock.now() + ttlMs)
      // A gateway that may have been restarted meanwhile gets the entries again, whatever this answer was.
      if (asked !== restarts) continue
      take(entry, states, told, true)
      stored.set(entry.uid, {
        entry,
        sentAt: full ? sentAt - ttlMs / 3 + FULL_MS : sentAt,
        storedAt: clock.now(),
        sealed: readings.get(entry.uid)?.entry === 'sealed',
        refused: full
      })
      if (full) readings.set(entry.uid, unanswered(readings.get(entry.uid), clock.now(), answer.why))
    }
    // A poll that began before the seal proves nothing when it ends: it is begun anew now, and not then.
    pollAnew()
  }

  const toldBy = ({ instance, fit: isFit, now }: BarrierAnswer, askedAt: Millis) => {
    const at = clock.now()
    const fit = isFit && identity.doubt() === ''
    if (now === undefined) return { at, countedAt: at, instance, fit }
    gatewayClock.note(askedAt, at, now * 1000)
    return { at, countedAt: gatewayClock.onOurs(askedAt, at, now * 1000), instance, fit }
  }

  const take = (
    entry: DesiredEntry,
    states: ReturnType<typeof byUid>,
    told: Omit<Told, 'afterSeal'>,
    afterSeal: boolean
  ): void => {
    if (!desired().has(entry.uid)) return
    const before = readings.get(entry.uid)
    const reading = readingOf(entry, states.get(entry.uid) ?? [], { ...told, afterSeal }, before)
    readings.set(entry.uid, reading)
    if (!before || !saysTheSame(before, reading)) movedAt = clock.now()
  }

  const lift = async (uids: readonly PodUid[]): Promise<void> => {
    const sentAt = clock.now()
    heardFrom(await api.remove(uids, ended.signal), sentAt)
    for (const uid of uids) {
      stored.delete(uid)
      held.delete(uid)
    }
  }

  const ask = async (entries: readonly DesiredEntry[], wait: number, signal: AbortSignal): Promise<void> => {
    const beganAt = clock.now()
    const answer = await api.inflight(
      entries.map(e => e.uid),
      wait,
      signal
    )
    heardFrom(answer, beganAt)
    const when = toldBy(answer, beganAt)
    const states = byUid(answer)
    for (const entry of entries) {
      const known = stored.get(entry.uid)
      // Put again while we asked: that answer is newer than this one.
      if (!known || known.storedAt > beganAt) continue
      take(known.entry, states, when, known.sealed)
      const { entry: told } = readings.get(entry.uid) ?? {}
      if (told === 'absent') stored.delete(entry.uid)
      // By another agent, between the question and now: what is asked from here on is asked after the seal.
      else if (told === 'sealed' && !known.sealed) stored.set(entry.uid, { ...known, sealed: true })
    }
    tell()
  }

  const isBusy = ({ uid }: DesiredEntry): boolean => (readings.get(uid)?.inflight.requests ?? 0) > 0
  /** Until it is sealed requests go on, and what has to be seen is what the workers say. */
  const isPolled = (entry: DesiredEntry): boolean => stored.get(entry.uid)?.sealed === true && isBusy(entry)

  const watched = (polled: boolean): DesiredEntry[] =>
    failures > 0
      ? []
      : [...desired().values()].filter(
          entry => entry.watch && stored.get(entry.uid)?.refused === false && isPolled(entry) === polled
        )

  const pusher = async (): Promise<void> => {
    // Several calls in one turn of the event loop become one.
    await Promise.resolve()
    const now = clock.now()
    const isKnown = mayPut()
    const due = isKnown ? [...desired().values()].filter(entry => isDue(entry, now)) : []
    const over: PodUid[] = []
    for (const [uid, until] of held) {
      if (until <= now) held.delete(uid)
      else if (!desired().has(uid)) over.push(uid)
    }
    // An address that is its own no longer: what is put leaves other addresses of a uid as they are.
    const shrunk = due.filter(({ uid, nodes }) =>
      stored.get(uid)?.entry.nodes.some(node => !nodes.includes(node))
    )
    if (shrunk.length > 0) await lift(shrunk.map(({ uid }) => uid))
    if (due.length > 0) await push(due)
    if (over.length > 0) await lift(over)
    if (due.length + over.length === 0)
      return pause(isKnown ? Math.min(...[...stored.values()].map(s => s.sentAt + ttlMs / 3)) : Infinity)
    bell.ring()
    tell()
  }

  const longPoller = async (): Promise<void> => {
    const busy = watched(true).slice(0, MOST_POLLED)
    if (busy.length === 0) return pause()
    const abort = new AbortController()
    poll = { about: about(busy), abort }
    try {
      await ask(busy, WAIT_SECONDS, AbortSignal.any([ended.signal, abort.signal]))
      bell.ring()
    } catch (error) {
      if (!abort.signal.aborted) throw error
    } finally {
      poll = undefined
    }
  }

  const toLookAt = (): DesiredEntry[] => [...watched(false), ...watched(true).slice(MOST_POLLED)]

  const looker = async (): Promise<void> => {
    const next = toLookAt()
    if (next.length === 0) return pause()
    const unchangedFor = clock.now() - movedAt
    await clock.sleep(
      lookPause({ entries: next.length, busy: next.some(isBusy), unchangedFor }),
      ended.signal
    )
    const quiet = toLookAt()
    if (quiet.length === 0) return
    await ask(quiet, 0, ended.signal)
    bell.ring()
  }

  const forEver = async (turn: () => Promise<void>): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        await turn()
      } catch (error) {
        if (ended.signal.aborted) return
        failed(error)
        const wait = doubled(BACK_OFF_MS, failures - 1)
        await Promise.race([clock.sleep(wait, ended.signal).catch(() => {}), urgent.heard()])
      }
    }
  }

  const running = [forEver(pusher), forEver(longPoller), forEver(looker)]

  const look = (): void => {
    for (const uid of readings.keys()) if (!desired().has(uid)) readings.delete(uid)
    movedAt = clock.now()
    pollAnew()
    bell.ring()
  }

  /** Ends a poll that asks about something else than it should. */
  const pollAnew = (): void => {
    if (poll && poll.about !== about(watched(true).slice(0, MOST_POLLED))) poll.abort.abort()
  }

  const about = (entries: readonly DesiredEntry[]): string =>
    entries
      .map(({ uid }) => uid)
      .sort()
      .join(' ')

  /** Expired on a clock that was set (an older plugin), dropped for want of room, lifted by another agent. */
  const compare: BarrierLane['compare'] = (told, askedAt) => {
    const held = [...stored.values()].filter(
      ({ entry, storedAt, refused }) => !refused && storedAt <= askedAt && desired().get(entry.uid) === entry
    )
    const missing = missingOf(
      held.map(({ entry }) => entry),
      told
    )
    for (const { uid } of missing) stored.delete(uid)
    if (missing.length > 0) bell.ring()
  }

  return {
    look,
    compare,
    again: () => {
      restarts++
      stored.clear()
      urgent.ring()
      look()
    },
    reading: uid => readings.get(uid),
    async stop() {
      ended.abort()
      bell.ring()
      await Promise.all(running)
    }
  }
}

/** Hundreds of entries may be in one answer. */
const byUid = ({ entries }: BarrierAnswer) => Map.groupBy(entries, ({ uid }) => uid)
