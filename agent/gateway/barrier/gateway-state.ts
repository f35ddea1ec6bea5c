import { createWakeup, type Clock } from '../../base/clock.ts'
import { isConnectionRefused, isOtherWire } from '../../base/errors.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Heard } from '../../rules/proof/observed.ts'
import type { BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierGateway, BarrierState } from '../apisix/barrier-wire.ts'

/** What one interface of a gateway last answered. */
export interface Freshness extends Heard {
  /** Why the last try failed, or empty. */
  readonly problem: string
}

/** A gateway's report on itself and its workers, and the age of the report. */
export interface GatewayState extends Freshness {
  readonly status: BarrierGateway | undefined
}

interface GatewayStateOptions {
  readonly api: Pick<BarrierApi, 'state' | 'entries'>
  readonly clock: Clock
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

/** Reads one gateway's state for as long as the gateway is known. Nothing else waits for it, and its failures affect nothing else. */
export function readGatewayState(options: GatewayStateOptions) {
  const { api, clock, identity, isHolding, listed, tell } = options
  const ended = new AbortController()
  const held = createWakeup()
  let current: GatewayState = {
    status: undefined,
    lastSuccessAt: undefined,
    lastAttemptAt: undefined,
    problem: '',
    refused: false
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
    const before = outlineOf(current, identity)
    const lastAttemptAt = clock.now()
    try {
      const status = await api.state(ended.signal)
      const now = clock.now()
      identity.note(status, lastAttemptAt, now, true)
      current = { status, lastSuccessAt: now, lastAttemptAt, problem: '', refused: false }
      void list(status, now)
    } catch (error) {
      const refused = isConnectionRefused(error)
      if (!ended.signal.aborted) identity.unanswered()
      const problem = (error as Error).message
      // No report can come from this plugin, so no hook waits for one.
      const status = isOtherWire(error) ? undefined : current.status
      current = { ...current, status, lastAttemptAt, problem, refused }
    }
    if (!ended.signal.aborted && outlineOf(current, identity) !== before) tell()
  }
  const pause = async (): Promise<void> => {
    // The reports of this gateway count only after enough answers, so the next read follows at once.
    const isOpen = identity.isOpen() && current.problem === ''
    if (isOpen && current.status?.fit) return
    if (!isOpen && !isHolding())
      await Promise.race([clock.sleep(PAUSE_MS.idle, ended.signal).catch(() => {}), held.woken()])
    if (isOpen || isHolding()) await clock.sleep(PAUSE_MS.holding, ended.signal).catch(() => {})
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
    state: (): GatewayState => current,
    /** Entries are held from now on. */
    hold: () => held.wake(),
    async stop() {
      ended.abort()
      await running
    }
  }
}

/** The part of a state that decisions depend on, as text. Most reads do not change this part, and then no round is needed. */
const outlineOf = ({ status, problem }: GatewayState, identity: Identity): string =>
  JSON.stringify([
    problem,
    identity.doubt(),
    status?.instance,
    status?.fit,
    status?.unfit,
    status?.workers.map(one => [one.pid, one.fit, one.revision, one.revisions, one.exiting]),
    status?.entries.flatMap(({ uid, late }) => (late > 0 ? [uid, late] : []))
  ])

interface InstanceSeen {
  /** When the instance first answered that it is fit. */
  readonly fitAt: Millis
  /** When another instance first answered a request that was sent later than `fitAt`. */
  otherAt: Millis | undefined
}

/**
 * An address from an operator counts as one gateway after this many fit answers, each on its own connection. An answer that is not fit
 * does not count, because it cannot show a second instance. A call without an answer starts the count again.
 */
const LOOKS = 16
/** How many instances are remembered, because a gateway that crashes all day has many. */
const MOST = 16

/** Whether a single gateway answers at one address. */
export type Identity = ReturnType<typeof createIdentity>

/**
 * After a restart, instance B answers instead of A, and A never answers again. If A answers after B, the address leads to several
 * gateways: a load balancer, a Service, two gateways on one host. This result is final, because nothing shows which gateway answers.
 *
 * Answers count in the order of their requests: a slow answer shows an earlier instance, not the present one. Only a fit answer
 * shows that A is back. While nginx replaces its binary (USR2), two instances answer, and both report that they are not fit.
 *
 * @param byHand the address comes from an operator; the address of a pod always counts as one gateway
 */
export function createIdentity(byHand: boolean) {
  const seen = new Map<string, InstanceSeen>()
  let last: string | undefined
  let looks = byHand ? LOOKS : 0
  let isSeveral = false

  return {
    /** An operator configured its address. */
    isByHand: byHand,
    /**
     * Takes an answer. `fit` is left out if the answer does not report it.
     *
     * @param fresh the answer came on a new connection
     */
    note(
      { instance, fit = false }: { readonly instance: string; readonly fit?: boolean },
      askedAt: Millis,
      receivedAt: Millis,
      fresh: boolean
    ) {
      last = instance
      for (const [other, { fitAt, otherAt }] of seen)
        if (other !== instance && otherAt === undefined && askedAt >= fitAt)
          seen.set(other, { fitAt, otherAt: receivedAt })
      if (!fit) return
      if (fresh) looks -= 1
      const known = seen.get(instance)
      if (known === undefined) seen.set(instance, { fitAt: receivedAt, otherAt: undefined })
      else if (known.otherAt !== undefined && askedAt >= known.otherAt) isSeveral = true
      const [oldest] = seen.keys()
      if (seen.size > MOST && oldest !== undefined) seen.delete(oldest)
    },
    /** A request got no answer, so the next answer may come from another gateway. */
    unanswered() {
      if (byHand) looks = LOOKS
    },
    /** The instance that answered last; `undefined` before the first answer. */
    instance: () => last,
    /** More than one gateway answers at the address. Once true, it stays true. */
    isSeveral: () => isSeveral,
    /** Whether the gateway must answer a few more times before its reports count. */
    isOpen: () => looks > 0 && !isSeveral,
    /** Why no report counts; empty once the address is known to lead to one gateway. */
    doubt(): string {
      if (isSeveral)
        return 'several gateways answer at its address, which is a load balancer or a Service: list every gateway at an address of its own'
      return looks > 0 ? 'whether one gateway answers at its address is not known yet' : ''
    }
  }
}

/** The doubt if the same instance answers under two names. Both names lead to one gateway, so perhaps another gateway is never asked. */
export const twinDoubt = (other: string): string =>
  `the gateway that answers is ${other} as well: list every gateway once, at an address of its own`
