import type { Logger } from 'pino'
import { createListeners, type Clock } from '../../base/clock.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { BarrierReading } from '../../rules/proof/verdict.ts'
import {
  createBarrierClient,
  type AsOf,
  type BarrierApi,
  type BarrierOptions
} from '../apisix/barrier-api.ts'
import type { BarrierEntry } from '../apisix/barrier-wire.ts'
import { openBarrierLane } from './barrier-lane.ts'
import {
  createInheritance,
  entriesOf,
  entryAt,
  type DesiredDrain,
  type InheritedEntry,
  type InheritedStop
} from './desired-entry.ts'
import type { ToldAnswers } from './entry-table.ts'
import { twinDoubt, type GatewayState } from './gateway-state.ts'

/** Keeps the deny-list of every gateway as desired, and reads the gateways' reports. */
export interface BarrierKeeper {
  /** Takes the complete list of drains. If the list no longer has a uid, its entries are deleted from every gateway. */
  desire(list: readonly DesiredDrain[]): void
  /** Takes the complete list of gateways. A gateway that is new or whose readiness has changed gets every entry. */
  gateways(list: readonly GatewayFact[]): void
  /** The last reading of this drain's entry: the same object until the next answer or failure. */
  reading(uid: PodUid, gatewayId: string): BarrierReading | undefined
  /** Why no answer for this gateway counts, even a fit one: its address may not lead to one gateway. Empty without such a doubt. */
  doubt(gatewayId: string): string
  /** Whether the desired entries rest on current knowledge: this process was not away, or its watches have reported since then. */
  isKnown(): boolean
  /** The entries for a gateway that starts. If a seal depends on that gateway's own workers, the entry is not sealed there. */
  entries(): readonly BarrierEntry[]
  /** Entries with successors that a gateway held when the agent first read it. Each is returned once. */
  takeInherited(): readonly InheritedEntry[]
  /** The stops of containers that the entries of all gateways tell. */
  stops(): readonly InheritedStop[]
  /** Removes the entries of such a stop. */
  lift(stop: InheritedStop): void
  /** The addresses of these entries, each once. */
  takeInheritedHosts(): ReadonlySet<string>
  /** Resolves once the gateways know this agent's answers. Rejects when the signal aborts. */
  handOver(signal: AbortSignal): Promise<void>
  /** The gateway's report on itself. It is read every few seconds, and more often while entries are held. */
  state(gatewayId: string): GatewayState | undefined
  /** Called after every answer and every failure. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

interface BarrierKeeperOptions {
  readonly api: BarrierOptions
  /** Wraps the client of each gateway, to measure it. */
  readonly wrap?: (api: BarrierApi) => BarrierApi
  readonly clock: Clock
  readonly log: Logger
  /** How current the agent's knowledge was when entries were desired; default: always current. */
  readonly knowledge?: Knowledge
  readonly answers?: ToldAnswers
  /** How long an entry lasts without a renewal, in ms; default 60 000. The agent renews it after a third of this time. */
  readonly ttlMs?: number
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
}

const ALWAYS_HERE: Knowledge = { resumedAt: () => -Infinity, knownAt: () => -Infinity, asOf: () => undefined }

export function createBarrierKeeper(options: BarrierKeeperOptions): BarrierKeeper {
  const { api, wrap = api => api, clock, log, knowledge = ALWAYS_HERE, ttlMs = 60_000 } = options
  const { answers = { own: new Map(), read() {} } } = options
  const client = createBarrierClient(api)
  const listeners = createListeners()
  const tell = (): void => listeners.notify()
  const inheritance = createInheritance(ttlMs, () => clock.now(), tell)
  let desired: readonly DesiredDrain[] = []
  let desiredBy = -Infinity
  let desiredAsOf: AsOf

  const mayChange = () => desiredBy >= knowledge.resumedAt()
  const lanes = createLanes(gateway =>
    openBarrierLane(gateway, {
      apiAt: host => wrap(client.at(host)),
      clock,
      log,
      ttlMs,
      answers,
      desired: () => desired,
      mayChange,
      asOf: () => desiredAsOf,
      listed: (id, list) => inheritance.read(id, list),
      tell
    })
  )

  return {
    desire(list) {
      const wasBarred = !mayChange()
      desiredBy = knowledge.knownAt()
      desiredAsOf = knowledge.asOf()
      desired = list
      for (const lane of lanes.all()) {
        if (wasBarred && mayChange()) lane.look()
        lane.desire()
      }
    },
    gateways: lanes.list,
    reading: (uid, gatewayId) => lanes.get(gatewayId)?.reading(uid),
    doubt(gatewayId) {
      const known = lanes.get(gatewayId)
      if (!known) return ''
      const instance = known.identity.instance()
      const twin = lanes
        .all()
        .find(other => other !== known && instance !== undefined && other.identity.instance() === instance)
      if (twin && (known.identity.isOpen() || known.identity.doubt() === '')) return twinDoubt(twin.name)
      return known.identity.doubt()
    },
    isKnown: mayChange,
    entries: () =>
      desired.flatMap(drain =>
        entriesOf(entryAt(drain, ''), { ttlMs, now: clock.now(), withSuccessors: true })
      ),
    stops() {
      const [first, ...others] = lanes.all().flatMap(lane => {
        const { status, problem } = lane.state()
        return status && problem === '' ? [lane.stops()] : []
      })
      return [...(first?.values() ?? [])].filter(({ uid, text }) =>
        others.every(stops => stops.get(uid)?.text === text)
      )
    },
    lift(stop) {
      for (const lane of mayChange() ? lanes.all() : []) lane.lift(stop)
    },
    takeInherited: () => inheritance.take(),
    takeInheritedHosts: () => inheritance.takeHosts(),
    async handOver(signal) {
      for (const lane of lanes.all()) lane.look()
      while (lanes.all().some(lane => lane.isUntold())) await clock.sleep(20, signal)
    },
    state: gatewayId => lanes.get(gatewayId)?.state(),
    onChange: listener => listeners.add(listener),
    async stop() {
      await lanes.stop()
      client.close()
    }
  }
}

/** What a part of the agent keeps for one gateway, and the calls that it makes there. A slow gateway delays only its own lane. */
interface Lane {
  /** The gateway is listed again. */
  readonly listed?: (gateway: GatewayFact) => void
  stop(): Promise<unknown>
}

/** One lane for each gateway. It ends when the gateway is gone, or has another address. */
interface Lanes<L> {
  /** Takes the complete list of gateways. */
  readonly list: (gateways: readonly GatewayFact[]) => void
  get(gatewayId: string): L | undefined
  all(): readonly L[]
  /** Resolves when no lane has a call under way. */
  readonly stop: () => Promise<void>
}

export function createLanes<L extends Lane>(open: (gateway: GatewayFact) => L): Lanes<L> {
  const lanes = new Map<string, { readonly ip: string; readonly lane: L }>()
  const closing = new Set<Promise<unknown>>()
  const list = (gateways: readonly GatewayFact[]): void => {
    const current = new Map(gateways.map(gateway => [gateway.id, gateway]))
    for (const [id, { ip, lane }] of lanes) {
      if (current.get(id)?.ip === ip) continue
      lanes.delete(id)
      const work: Promise<unknown> = lane.stop().finally(() => closing.delete(work))
      closing.add(work)
    }
    for (const gateway of current.values()) {
      const known = lanes.get(gateway.id)
      if (known) known.lane.listed?.(gateway)
      else lanes.set(gateway.id, { ip: gateway.ip, lane: open(gateway) })
    }
  }
  return {
    list,
    get: id => lanes.get(id)?.lane,
    all: () => [...lanes.values()].map(({ lane }) => lane),
    async stop() {
      list([])
      await Promise.all(closing)
    }
  }
}
