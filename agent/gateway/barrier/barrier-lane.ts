import type { Logger } from 'pino'
import { createWakeup, type Clock } from '../../base/clock.ts'
import { doubled, type GatewayFact, type Millis, type PodUid } from '../../rules/drain/facts.ts'
import type { AsOf, BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierAnswer, BarrierState } from '../apisix/barrier-wire.ts'
import {
  entriesAt,
  entriesOf,
  putBefore,
  stopsIn,
  type DesiredDrain,
  type DesiredEntry,
  type InheritedStop
} from './desired-entry.ts'
import { pollPause } from './barrier-reading.ts'
import { createEntryTable, type ToldAnswers } from './entry-table.ts'
import { createIdentity, readGatewayState } from './gateway-state.ts'

/** What the lanes of all gateways share. */
interface LaneOptions {
  readonly apiAt: (host: string) => BarrierApi
  readonly clock: Clock
  readonly log: Logger
  readonly ttlMs: number
  /** The entries of all drains. */
  readonly desired: () => readonly DesiredDrain[]
  readonly answers: ToldAnswers
  /** Whether the desired entries rest on current knowledge. If not, no entry is put or removed. */
  readonly mayChange: () => boolean
  /** The revision as of which the entries are desired. */
  readonly asOf: () => AsOf
  readonly ownerSince: (ip: string, uid: string) => Millis
  /** Takes the first list of a gateway's entries. */
  readonly inherit: (list: readonly BarrierState[]) => void
  /** Called after each answer and each failure. */
  readonly tell: () => void
}

const BACK_OFF_MS = { first: 50, longest: 2000 }
/** The length of a long poll; the gateway answers earlier if an entry changes. */
const WAIT_SECONDS = 5
/** The most entries in one long poll, which answers as soon as one of them changes. The other entries are polled without a wait. */
const MOST_POLLED = 1000

/**
 * All calls to the barrier of one gateway, so a slow gateway delays only its own lane. Three loops work on one table of entries: one puts and
 * removes, one long-polls requests in flight, one polls the rest. A fourth reads the gateway's state and its list of entries.
 */
export type BarrierLane = ReturnType<typeof openBarrierLane>

export function openBarrierLane(first: GatewayFact, options: LaneOptions) {
  const { clock, ttlMs, answers, mayChange, asOf, ownerSince, tell } = options
  const { id, name } = first
  const api = options.apiAt(first.ip)
  const log = options.log.child({ gateway: name })
  const identity = createIdentity(first.byHand === true)
  let wanted = entriesAt(id, options.desired(), new Map())
  let { ready } = first
  let stops = stopsIn([], 0)
  const table = createEntryTable(ttlMs, () => wanted, clock.now(), answers.own)
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
        const { text, at = 0 } = answers.own.get(entry.uid) ?? {}
        const answered = text !== undefined && { answer: text, answeredFor: Math.max(0, sentAt - at) / 1000 }
        const withSuccessors = table.tellsSuccessors(entry, sentAt)
        return entriesOf(entry, { ttlMs, now: sentAt, withSuccessors }).map(e => ({ ...e, ...answered }))
      }),
      known,
      ended.signal
    )
    heardFrom(answer, sentAt)
    table.put(due, { ...answer, sentAt }, toldBy(answer), asked !== restarts)
    // A poll that began before the seal proves nothing. So a new poll replaces it now.
    pollAnew()
  }

  const toldBy = ({ instance, fit }: BarrierAnswer) => ({
    at: clock.now(),
    instance,
    fit: fit && identity.doubt() === ''
  })

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
    if (table.reported(entries, answer, toldBy(answer), beganAt)) wakeup.wake()
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

  const about = (entries: readonly DesiredEntry[]): string => String(entries.map(({ uid }) => uid).sort())

  /** Puts all entries again, because the gateway may have been restarted. */
  const again = (): void => {
    restarts++
    table.forget()
    urgent.wake()
    look()
  }

  let isListed = false
  let lastRead: string | undefined
  let trouble = ''
  const reader = readGatewayState({
    api,
    clock,
    identity,
    isHolding: () => options.desired().length > 0,
    listed(list, askedAt) {
      // An entry may be missing because it was evicted, or because another agent removed it.
      if (table.compare(list, askedAt)) wakeup.wake()
      const taken = list.flatMap(state => {
        const uid = state.uid as PodUid
        return !wanted.has(uid) && ownerSince(state.ip, uid) > putBefore(state, ttlMs, askedAt) ? { uid } : []
      })
      table.sent(taken, askedAt)
      if (taken.length > 0) wakeup.wake()
      if (!isListed) options.inherit(list)
      isListed = true
      stops = stopsIn(list, askedAt)
      if (stops.size > 0) tell()
      answers.read(list, askedAt)
    },
    tell() {
      const { status, problem } = reader.state()
      const why = problem || identity.doubt() || status?.unfit.join('; ') || ''
      if (why !== '' && trouble === '') log.warn({ why }, 'gateway gives no evidence: see doctor')
      trouble = why
      const now = status?.instance
      // The gateway has restarted while no other call could show it. Its entries are lost.
      if (lastRead !== undefined && now !== lastRead && !identity.isSeveral()) again()
      lastRead = now
      tell()
    }
  })

  return {
    name,
    identity,
    state: () => reader.state(),
    stops: () => stops,
    reading: (uid: PodUid) => table.reading(uid),
    isUntold: () => table.isUntold(),
    look,
    /** The gateway may have fetched these entries. */
    fetched: (entries: readonly DesiredEntry[], at: Millis) => table.sent(entries, at),
    /** If this call fails, the entry stays until its ttl is over. */
    lift({ uid, text }: InheritedStop) {
      if (stops.delete(uid)) api.remove({ uids: [uid], asOf: asOf(), stops: { [uid]: text } }).catch(() => {})
    },
    /** The desired entries may have changed. `isNews`: and the owners of addresses. */
    desire(isNews: boolean) {
      const before = wanted
      wanted = entriesAt(id, options.desired(), before)
      if (before.size === 0 && wanted.size > 0) reader.hold()
      const isNew = wanted.values().some(entry => before.get(entry.uid) !== entry)
      const isTaken = (isNews || isNew) && table.findTaken()
      if (isNew || wanted.size !== before.size || isTaken || table.isUntold()) look()
    },
    /** The gateway is listed again. */
    listed(now: GatewayFact) {
      const isRestarted = ready !== now.ready
      ready = now.ready
      if (isRestarted) again()
    },
    async stop() {
      ended.abort()
      wakeup.wake()
      await Promise.all([...running, reader.stop()])
    }
  }
}
