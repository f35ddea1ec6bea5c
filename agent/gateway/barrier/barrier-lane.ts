import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import type { AsOf, BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierAnswer, BarrierState } from '../apisix/barrier-wire.ts'
import type { GatewayClock, Identity } from './gateway-clock.ts'
import { entriesOf, type DesiredEntry } from './desired-entry.ts'
import { createEntryTable, type ToldAnswers } from './entry-table.ts'
import type { BarrierReading } from '../../rules/proof/verdict.ts'
import { doubled } from '../../rules/drain/times.ts'

/** The work of `BarrierKeeper` for one gateway. A slow gateway delays only its own lane. */
interface BarrierLane {
  /** Call it when the desired entries have changed. */
  readonly look: () => void
  /** Takes the gateway's list of its entries. Entries that are not as they were put are put again at once. */
  readonly compare: (list: readonly BarrierState[], askedAt: Millis) => void
  /** Puts all entries again, because the gateway may have been restarted. */
  readonly again: () => void
  readonly reading: (uid: PodUid) => BarrierReading | undefined
  /** Whether the gateway names a successor whose address is another pod's. */
  readonly namesTaken: () => boolean
  readonly isUntold: () => boolean
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
  readonly answers: ToldAnswers['own']
  /** Whether the desired entries rest on current knowledge. If not, no entry is put or removed. */
  readonly mayChange: () => boolean
  /** The revision as of which the entries are desired. */
  readonly asOf: () => AsOf
  readonly tell: () => void
}

const BACK_OFF_MS = { first: 50, longest: 2000 }
/** The length of a long poll; the gateway answers earlier if an entry changes. */
const WAIT_SECONDS = 5
/** The most entries in one long poll, which answers as soon as one of them changes. The other entries are polled without a wait. */
const MOST_POLLED = 1000

/** Three loops over one table of entries: one puts and removes, one long-polls requests in flight, one polls the rest. */
export function createBarrierLane(options: BarrierLaneOptions): BarrierLane {
  const { api, clock, gatewayClock, identity, log, ttlMs, desired, answers, mayChange, asOf, tell } = options
  const table = createEntryTable(ttlMs, desired, clock.now(), answers)
  const ended = new AbortController()
  const wakeup = createWakeup()
  /** Woken when the gateway may have (re)started: it must get its entries before the back-off ends. */
  const urgent = createWakeup()
  let instance: string | undefined
  let failures = 0
  let restarts = 0
  let poll: { readonly about: string; readonly abort: AbortController } | undefined

  /** Resolves on a change, or at `at`. */
  const pause = async (at = Infinity): Promise<void> => {
    if (ended.signal.aborted) return
    const cancel = at === Infinity ? () => {} : clock.alarm(at, wakeup.wake)
    await wakeup.woken()
    cancel()
  }

  const heardFrom = (answer: Pick<BarrierAnswer, 'instance'> & { fit?: boolean }, askedAt: Millis): void => {
    identity.note(answer, askedAt, clock.now(), false)
    if (failures > 0) log.info('barrier answers again')
    failures = 0
    // Several gateways behind one address are not a restart, and an entry in one of them proves nothing.
    if (!identity.isSeveral() && instance !== undefined && instance !== answer.instance) {
      log.warn('gateway has restarted and forgotten its barrier entries: all are put again')
      table.restarted(answer.instance)
    }
    instance = answer.instance
  }

  const failed = (error: unknown): void => {
    if (failures++ === 0) log.warn({ err: error }, 'barrier cannot be reached')
    // The gateway may have been restarted, so all entries are put again once it answers.
    table.failed((error as Error).message, clock.now())
    // Wakes the pusher, which keeps retrying; the other loops wait until it succeeds.
    wakeup.wake()
    tell()
  }

  const push = async (due: readonly DesiredEntry[], known: AsOf): Promise<void> => {
    const sentAt = clock.now()
    const asked = restarts
    table.sent(due, sentAt)
    const answer = await api.put(
      due.flatMap(entry => {
        const { text, at = 0 } = answers.get(entry.uid) ?? {}
        const told = text !== undefined && { answer: text, answeredFor: Math.max(0, sentAt - at) / 1000 }
        const withSuccessors = table.tellsSuccessors(entry, sentAt)
        return entriesOf(entry, { ttlMs, now: sentAt, withSuccessors }).map(e => ({ ...e, ...told }))
      }),
      known,
      ended.signal
    )
    heardFrom(answer, sentAt)
    table.put(due, { ...answer, sentAt }, toldBy(answer, sentAt), asked !== restarts)
    // A poll that began before the seal proves nothing. So a new poll replaces it now.
    pollAnew()
  }

  const toldBy = ({ instance, fit: isFit, now }: BarrierAnswer, askedAt: Millis) => {
    const at = clock.now()
    const fit = isFit && identity.doubt() === ''
    gatewayClock.note(askedAt, at, now * 1000)
    return { at, countedAt: gatewayClock.onOurs(askedAt, at, now * 1000), instance, fit }
  }

  const lift = async (uids: readonly PodUid[], known: AsOf): Promise<void> => {
    const sentAt = clock.now()
    heardFrom(await api.remove({ uids, asOf: known, stops: table.stops(uids) }, ended.signal), sentAt)
    table.lifted(uids)
  }

  const ask = async (entries: readonly DesiredEntry[], wait: number, signal: AbortSignal): Promise<void> => {
    const beganAt = clock.now()
    const uids = entries.map(({ uid }) => uid)
    const answer = await api.inflight(uids, wait, signal)
    heardFrom(answer, beganAt)
    table.reported(entries, answer, toldBy(answer, beganAt), beganAt)
    tell()
  }

  const watched = (polled: boolean): readonly DesiredEntry[] => (failures > 0 ? [] : table.watched(polled))

  const pusher = async (): Promise<void> => {
    // Several calls of `look` in one turn of the event loop then lead to one put.
    await Promise.resolve()
    const now = clock.now()
    const isKnown = mayChange()
    // The revision of this decision: the desired entries may change while calls are under way.
    const known = asOf()
    const due = isKnown ? table.due(now) : []
    const over = isKnown ? table.over(now) : []
    const shrunk = new Set(table.shrunk(due))
    const whole = due.filter(entry => !shrunk.has(entry))
    // Addresses are lifted last: until its put, another entry may still name one of them as a successor's.
    if (whole.length > 0) await push(whole, known)
    if (shrunk.size > 0) {
      const uids = [...shrunk].map(({ uid }) => uid)
      await lift(uids, known)
      await push([...shrunk], known)
    }
    if (over.length > 0) await lift(over, known)
    if (due.length + over.length === 0) return pause(isKnown ? table.renewAt() : Infinity)
    wakeup.wake()
    tell()
  }

  const longPoller = async (): Promise<void> => {
    const busy = watched(true).slice(0, MOST_POLLED)
    if (busy.length === 0) return pause()
    const abort = new AbortController()
    poll = { about: about(busy), abort }
    try {
      await ask(busy, WAIT_SECONDS, AbortSignal.any([ended.signal, abort.signal]))
      wakeup.wake()
    } catch (error) {
      if (!abort.signal.aborted) throw error
    } finally {
      poll = undefined
    }
  }

  const toPoll = (): DesiredEntry[] => [...watched(false), ...watched(true).slice(MOST_POLLED)]

  const quickPoller = async (): Promise<void> => {
    const next = toPoll()
    if (next.length === 0) return pause()
    const isBusy = next.some(entry => table.isBusy(entry))
    await clock.sleep(pollPause(next.length, isBusy, clock.now() - table.movedAt()), ended.signal)
    const quiet = toPoll()
    if (quiet.length === 0) return
    await ask(quiet, 0, ended.signal)
    wakeup.wake()
  }

  const forEver = async (turn: () => Promise<void>): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        await turn()
      } catch (error) {
        if (ended.signal.aborted) return
        failed(error)
        const wait = doubled(BACK_OFF_MS, failures - 1)
        await Promise.race([clock.sleep(wait, ended.signal).catch(() => {}), urgent.woken()])
      }
    }
  }

  const running = [forEver(pusher), forEver(longPoller), forEver(quickPoller)]

  const look = (): void => {
    table.changed(clock.now())
    pollAnew()
    wakeup.wake()
  }

  /** Ends the running long poll if the list of entries to poll has changed. */
  const pollAnew = (): void => {
    if (poll && poll.about !== about(watched(true).slice(0, MOST_POLLED))) poll.abort.abort()
  }

  const about = (entries: readonly DesiredEntry[]): string =>
    entries
      .map(({ uid }) => uid)
      .sort()
      .join(' ')

  return {
    look,
    // An entry may be missing because it was evicted, or because another agent removed it.
    compare(list, askedAt) {
      if (table.compare(list, askedAt)) wakeup.wake()
    },
    again: () => {
      restarts++
      table.forget()
      urgent.wake()
      look()
    },
    reading: uid => table.reading(uid),
    namesTaken: () => table.namesTaken(),
    isUntold: () => table.isUntold(),
    async stop() {
      ended.abort()
      wakeup.wake()
      await Promise.all(running)
    }
  }
}

/** Wakes all that wait for it at once; without a waiter, `wake` does nothing. */
function createWakeup() {
  let next = Promise.withResolvers<void>()
  return {
    wake: () => {
      next.resolve()
      next = Promise.withResolvers()
    },
    woken: () => next.promise
  }
}

/** In ms. The pause is the time since the last change divided by `share`, within the other values, and at least `each` per entry. */
const POLL_MS = { shortest: 20, busy: 50, longest: 500, share: 20, each: 0.2 }

/**
 * The pause before the next poll of entries, in ms. These polls show bypasses, long-lived connections, and progress before the seal. An
 * answer with hundreds of entries costs CPU on both sides. While requests are in flight (`busy`), reports change all the time. That is
 * no reason to poll more often, so the shortest pause is then longer. `unchangedFor`: since a report or the desired entries last changed.
 */
export function pollPause(entries: number, busy: boolean, unchangedFor: number): number {
  const shortest = Math.max(busy ? POLL_MS.busy : POLL_MS.shortest, entries * POLL_MS.each)
  return Math.max(shortest, Math.min(POLL_MS.longest, unchangedFor / POLL_MS.share))
}
