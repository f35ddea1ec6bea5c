import type { Logger } from 'pino'
import { createListeners, type Clock } from '../../base/clock.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { Heard, Wanted } from '../../rules/proof/observed.ts'
import type { BarrierReading } from '../../rules/proof/verdict.ts'
import type { AsOf, BarrierClient } from '../apisix/barrier-api.ts'
import type { ReadGateway } from '../apisix/control-api.ts'
import { openBarrierLane, type BarrierLane } from './barrier-lane.ts'
import { openControlLane } from './control-lane.ts'
import {
  createInheritance,
  entriesOf,
  entryAt,
  type DesiredDrain,
  type DesiredEntry,
  type InheritedStop
} from './desired-entry.ts'
import type { ToldAnswers } from './entry-table.ts'
import { twinDoubt, type GatewayState } from './gateway-state.ts'

interface GatewaysOptions {
  readonly barrier?: BarrierKeeperOptions | undefined
  /** Reads a gateway's Control API. */
  readonly read?: ReadGateway | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** The calls to one gateway. */
interface Lane {
  readonly ip: string
  readonly barrier: BarrierLane | undefined
  readonly control: ReturnType<typeof openControlLane> | undefined
}

/** Keeps the deny-list of every gateway as desired, and reads the gateways' reports. */
export type BarrierKeeper = Omit<ReturnType<typeof createBarrierKeeper>, 'open'>

interface BarrierKeeperOptions {
  readonly api: BarrierClient
  /** How current the agent's knowledge was when entries were desired; default: always current. */
  readonly knowledge?: Knowledge
  readonly answers?: ToldAnswers
  /** How long an entry lasts without a renewal, in ms; default 60 000. The agent renews it after a third of this time. */
  readonly ttlMs?: number | undefined
}

/**
 * An entry rests on knowledge about its address. After an absence of this process (start/start-sources.ts) this knowledge may be minutes old,
 * and another pod may have the address. So no entry is put, renewed or removed until the entries rest on later reports of a watch.
 */
export interface Knowledge {
  /** When this process last came back from an absence. */
  resumedAt(): Millis
  /** The time up to which the agent knows all changes. */
  knownAt(): Millis
  /** The revision of the API server up to which it knows the pods. */
  asOf(): AsOf
  /**
   * Since when a pod with another uid has this address, in ms; `-Infinity`: no live pod is known to have it. An entry that was put before is
   * removed, whoever has put it: an agent may have ended before the address was given out again.
   */
  ownerSince(ip: string, uid: string): Millis
}

export const ALWAYS_HERE: Knowledge = {
  resumedAt: () => -Infinity,
  knownAt: () => -Infinity,
  asOf: () => undefined,
  ownerSince: () => -Infinity
}

export type Gateways = ReturnType<typeof createGateways>

/** All gateways. One lane for each makes all calls to it, so a slow gateway delays only its own. */
export function createGateways({ read, clock, log, ...options }: GatewaysOptions) {
  const listeners = createListeners()
  const tell = (): void => listeners.notify()
  /** A lane ends when its gateway is gone, or has another address. */
  const lanes = new Map<string, Lane>()
  const closing = new Set<Promise<unknown>>()
  const barrier =
    options.barrier &&
    createBarrierKeeper(options.barrier, {
      clock,
      log,
      tell,
      get: id => lanes.get(id)?.barrier,
      all: () => [...lanes.values()].flatMap(lane => lane.barrier ?? [])
    })
  const controls = () => [...lanes.values()].flatMap(lane => lane.control ?? [])
  /** The reads of the gateways' Control APIs; see `openControlLane`. */
  const probe = read && {
    want: (list: readonly Wanted[]) => controls().forEach(lane => lane.want(list)),
    hurry: () => controls().forEach(lane => lane.hurry()),
    observation: (uid: PodUid, id: string) => lanes.get(id)?.control?.observation(uid),
    sighting: (id: string) => lanes.get(id)?.control?.sighting(),
    freshness: (id: string) => lanes.get(id)?.control?.freshness()
  }

  const list = (gateways: readonly GatewayFact[]): void => {
    const current = new Map(gateways.map(gateway => [gateway.id, gateway]))
    for (const [id, lane] of lanes) {
      if (current.get(id)?.ip === lane.ip) continue
      lanes.delete(id)
      const work: Promise<unknown> = Promise.all([lane.barrier?.stop(), lane.control?.stop()]).finally(() =>
        closing.delete(work)
      )
      closing.add(work)
    }
    for (const gateway of current.values()) {
      const known = lanes.get(gateway.id)
      if (known) known.barrier?.listed(gateway)
      else
        lanes.set(gateway.id, {
          ip: gateway.ip,
          barrier: barrier?.open(gateway),
          control: read && openControlLane(gateway, { read, clock, log, tell })
        })
    }
  }

  return {
    /** Takes the complete list of gateways. A gateway that is new or whose readiness has changed gets every entry. */
    list,
    /** Absent if no barrier is configured. */
    barrier,
    /** Absent if the Control API is off. */
    probe,
    /** The last results of the gateway's interfaces, the most conclusive first. */
    heard(id: string): readonly Heard[] {
      const { barrier, control } = lanes.get(id) ?? {}
      return [barrier?.state(), control?.freshness()].filter(one => one !== undefined)
    },
    /** Called after every answer and every failure. Returns a function that unsubscribes. */
    onChange: (listener: () => void): (() => void) => listeners.add(listener),
    /** Resolves when no call is under way. */
    async stop() {
      list([])
      await Promise.all(closing)
      options.barrier?.api.close()
    }
  }
}

/** The lanes of all gateways, and what they share. */
interface BarrierLanes {
  readonly clock: Clock
  readonly log: Logger
  readonly tell: () => void
  get(gatewayId: string): BarrierLane | undefined
  all(): readonly BarrierLane[]
}

function createBarrierKeeper(options: BarrierKeeperOptions, lanes: BarrierLanes) {
  const { api, knowledge = ALWAYS_HERE, ttlMs = 60_000 } = options
  const { answers = { own: new Map(), read() {} } } = options
  const { clock, log, tell } = lanes
  const inheritance = createInheritance(ttlMs, () => clock.now(), tell)
  let desired: readonly DesiredDrain[] = []
  let desiredBy = -Infinity
  let desiredAsOf: AsOf

  /** What gateways have fetched, and when. */
  const given = new Map<PodUid, { readonly entry: DesiredEntry; readonly at: Millis }>()

  const mayChange = () => desiredBy >= knowledge.resumedAt()

  return {
    open(gateway: GatewayFact): BarrierLane {
      const lane = openBarrierLane(gateway, {
        apiAt: host => api.at(host),
        clock,
        log,
        ttlMs,
        answers,
        desired: () => desired,
        mayChange,
        asOf: () => desiredAsOf,
        ownerSince: (ip, uid) => knowledge.ownerSince(ip, uid),
        inherit: list => inheritance.read(list),
        tell
      })
      for (const { entry, at } of given.values()) lane.fetched([entry], at)
      return lane
    },
    /** Takes the complete list of drains. If the list no longer has a uid, its entries are deleted from every gateway. */
    desire(list: readonly DesiredDrain[], isNews = true) {
      const wasBarred = !mayChange()
      desiredBy = knowledge.knownAt()
      desiredAsOf = knowledge.asOf()
      desired = list
      for (const lane of lanes.all()) {
        if (wasBarred && mayChange()) lane.look()
        lane.desire(isNews)
      }
    },
    /** The last reading of this drain's entry: the same object until the next answer or failure. */
    reading: (uid: PodUid, gatewayId: string): BarrierReading | undefined =>
      lanes.get(gatewayId)?.reading(uid),
    /** Why no answer for this gateway counts, even a fit one: its address may not lead to one gateway. Empty without such a doubt. */
    doubt(gatewayId: string): string {
      const known = lanes.get(gatewayId)
      if (!known) return ''
      const instance = known.identity.instance()
      const twin = lanes
        .all()
        .find(other => other !== known && instance !== undefined && other.identity.instance() === instance)
      if (twin && (known.identity.isOpen() || known.identity.doubt() === '')) return twinDoubt(twin.name)
      return known.identity.doubt()
    },
    /** How often an entry is put again, in ms. */
    renewEveryMs: ttlMs / 3,
    /** Whether the desired entries rest on current knowledge: this process was not away, or its watches have reported since then. */
    isKnown: mayChange,
    /**
     * The entries for a gateway that starts, and the revision as of which they are. If a seal depends on that gateway's own workers, the entry
     * is not sealed there. Every gateway may hold them from now on, also one that is not listed yet.
     */
    fetched() {
      const now = clock.now()
      const list = desired.map(drain => entryAt(drain, ''))
      for (const [uid, { at }] of given) if (at + ttlMs < now) given.delete(uid)
      for (const entry of list) given.set(entry.uid, { entry, at: now })
      for (const lane of lanes.all()) lane.fetched(list, now)
      // No names: a gateway fetches in plain text.
      const entries = list.flatMap(entry =>
        entriesOf({ ...entry, ways: [] }, { ttlMs, now, withSuccessors: true })
      )
      return { entries, asOf: desiredAsOf }
    },
    /** The stops of containers that the entries of all gateways tell. */
    stops(): readonly InheritedStop[] {
      const [first, ...others] = lanes.all().flatMap(lane => {
        const { status, problem } = lane.state()
        return status && problem === '' ? [lane.stops()] : []
      })
      return [...(first?.values() ?? [])].filter(({ uid, text }) =>
        others.every(stops => stops.get(uid)?.text === text)
      )
    },
    /** Removes the entries of such a stop. */
    lift(stop: InheritedStop) {
      for (const lane of mayChange() ? lanes.all() : []) lane.lift(stop)
    },
    /** Entries with successors that a gateway held when the agent first read it. Each is returned once. */
    takeInherited: () => inheritance.take(),
    /** Resolves once the gateways know this agent's answers. Rejects when the signal aborts. */
    async handOver(signal: AbortSignal) {
      for (const lane of lanes.all()) lane.look()
      while (lanes.all().some(lane => lane.isUntold())) await clock.sleep(20, signal)
    },
    /** The gateway's report on itself. It is read every few seconds, and more often while entries are held. */
    state: (gatewayId: string): GatewayState | undefined => lanes.get(gatewayId)?.state()
  }
}
