import type { Clock } from '../../base/clock.ts'
import { isConnectionRefused, isOtherWire } from '../../base/errors.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierGateway, BarrierState } from '../apisix/barrier-wire.ts'
import type { GatewayClock, Identity } from './gateway-clock.ts'

/** A gateway's report on itself and its workers, and the age of the report. */
export interface GatewayState {
  readonly told: BarrierGateway | undefined
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** Why the last try failed, or empty. */
  readonly problem: string
  /** Nothing listens at the address. */
  readonly refused: boolean
  /** How far the gateway's clock is ahead of the agent's, in ms. */
  readonly aheadMs: number
}

interface GatewayStateReader {
  state(): GatewayState
  stop(): Promise<void>
}

interface GatewayStateOptions {
  readonly api: Pick<BarrierApi, 'state' | 'entries'>
  readonly clock: Clock
  readonly gatewayClock: GatewayClock
  readonly identity: Identity
  /** Whether entries are held. A restart loses them. The readiness does not show a quick restart; only the state shows it. */
  readonly isHolding: () => boolean
  /** Takes the list of all entries, which is read again whenever a report shows that they have changed. */
  readonly listed: (list: readonly BarrierState[], askedAt: Millis) => void
  /** Called if a report differs from the previous report in more than times and counters. */
  readonly tell: () => void
}

/** The least time between two lists, in ms: `each` for an entry, so that a list costs the same share of time however long it is. */
const LIST_MS = { shortest: 700, each: 5 }
/** The pause between two reads, in ms: while entries are held, and otherwise. */
const PAUSE_MS = { holding: 250, idle: 5000 }
/** Until a gateway's clock is known within `withinMs`, its state is read as if entries were held, at most `tries` times. */
const CLOCK = { withinMs: 1, tries: 40 }

/** Reads one gateway's state for as long as the gateway is known. Nothing else waits for it, and its failures affect nothing else. */
export function readGatewayState(options: GatewayStateOptions): GatewayStateReader {
  const { api, clock, gatewayClock, identity, isHolding, listed, tell } = options
  const ended = new AbortController()
  let current: GatewayState = {
    told: undefined,
    lastSuccessAt: undefined,
    lastAttemptAt: undefined,
    problem: '',
    refused: false,
    aheadMs: 0
  }

  let known: string | undefined
  let askedAt = -Infinity
  let isAsking = false
  /** No report waits for the list. */
  const list = async ({ instance, held }: BarrierGateway, now: Millis): Promise<void> => {
    // The end of an entry's ttl changes the number only.
    const state = `${instance} ${held.generation} ${held.entries}`
    const dueAt = askedAt + Math.max(LIST_MS.shortest, held.entries * LIST_MS.each)
    if (state === known || isAsking || now < dueAt) return
    askedAt = now
    isAsking = true
    // After a failure, the next report asks again.
    const all = await api.entries(ended.signal).catch(() => undefined)
    isAsking = false
    if (!all) return
    known = state
    listed(all, now)
  }
  const read = async (): Promise<void> => {
    const before = said(current, identity)
    const lastAttemptAt = clock.now()
    try {
      const told = await api.state(ended.signal)
      const now = clock.now()
      gatewayClock.note(lastAttemptAt, now, told.now * 1000)
      identity.note(told, lastAttemptAt, now, true)
      const aheadMs = gatewayClock.ahead()
      current = { told, lastSuccessAt: now, lastAttemptAt, problem: '', refused: false, aheadMs }
      void list(told, now)
    } catch (error) {
      const refused = isConnectionRefused(error)
      if (!ended.signal.aborted) identity.unanswered()
      const problem = (error as Error).message
      // No report can come from this plugin, so no hook waits for one.
      const told = isOtherWire(error) ? undefined : current.told
      current = { ...current, told, lastAttemptAt, problem, refused }
    }
    if (!ended.signal.aborted && said(current, identity) !== before) tell()
  }
  let tries = 0
  const isUnsureOfClock = () =>
    current.told !== undefined && gatewayClock.within() > CLOCK.withinMs && tries++ < CLOCK.tries
  const pause = async (): Promise<void> => {
    // The reports of this gateway count only after enough answers, so the next read follows at once.
    const isOpen = identity.isOpen() && current.problem === ''
    if (isOpen && current.told?.fit) return
    const ms = isOpen || isHolding() || isUnsureOfClock() ? PAUSE_MS.holding : PAUSE_MS.idle
    await clock.sleep(ms, ended.signal).catch(() => {})
  }
  const running = (async () => {
    while (!ended.signal.aborted) {
      // The requests of two agents may alternate, so that a load balancer always sends one agent to the same gateway. Two
      // requests at once reach two gateways.
      await Promise.all(identity.isByHand ? [read(), read()] : [read()])
      if (!ended.signal.aborted) await pause()
    }
  })()

  return {
    state: () => current,
    async stop() {
      ended.abort()
      await running
    }
  }
}

/** The part of a state that decisions depend on, as text. Most reads do not change this part, and then no round is needed. */
const said = ({ told, problem }: GatewayState, identity: Identity): string =>
  JSON.stringify([
    problem,
    identity.doubt(),
    told?.instance,
    told?.fit,
    told?.unfit,
    told?.workers.map(one => [one.pid, one.fit, one.revision, one.revisions, one.exiting]),
    told?.entries.flatMap(({ uid, late }) => (late > 0 ? [uid, late] : []))
  ])
