import type { Logger } from 'pino'

import type { Clock } from '../base/clock.ts'
import type { GatewayFact, Millis, PodUid } from '../drain/facts.ts'
import {
  createBarrierClient,
  type BarrierApi,
  type BarrierEntry,
  type BarrierOptions
} from '../apisix/barrier-api.ts'
import { createListeners } from '../base/listeners.ts'
import { createBarrierLane, type BarrierLane } from './barrier-lane.ts'
import { entriesOf, entryAt, samePut, type DesiredDrain, type DesiredEntry } from './barrier-reading.ts'
import type { BarrierReading } from './evidence.ts'
import { createGatewayClock } from './gateway-clock.ts'
import { createIdentity, twinDoubt, type Identity } from './identity.ts'
import { readGatewayState, type GatewayState, type GatewayStateReader } from './gateway-state.ts'

export type { DesiredDrain } from './barrier-reading.ts'

/** Keeps the deny-list of every gateway as desired, and reads what it says. */
export interface BarrierKeeper {
  /** The complete list: a uid that is not in it any more is deleted from every gateway. */
  desire(list: readonly DesiredDrain[]): void
  /** The complete list of gateways; a new one, and one whose readiness has changed, gets every entry. */
  gateways(list: readonly GatewayFact[]): void
  /** The same object until the gateway has said something else. */
  reading(uid: PodUid, gatewayId: string): BarrierReading | undefined
  /** Why nothing that answers for this gateway counts, however fit it is: it is not one gateway. Empty where it is. */
  doubt(gatewayId: string): string
  /** What is desired is desired by what is known now: this process was not away, or its watch has told since. */
  isKnown(): boolean
  /** The entries for a gateway that starts. An entry whose seal depends on that gateway's own workers is not sealed in it. */
  entries(): readonly BarrierEntry[]
  /** What the gateway says of itself; read every few seconds, and more often while entries are held. */
  state(gatewayId: string): GatewayState | undefined
  /** After every answer and every failure. Returns what ends it. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

interface BarrierKeeperOptions {
  readonly api: BarrierOptions
  /** Wraps the client of each gateway, to measure it. */
  readonly wrap?: (api: BarrierApi) => BarrierApi
  readonly clock: Clock
  readonly log: Logger
  /** What was known when entries were desired; default: everything. */
  readonly knowledge?: Knowledge
  /** How long an entry holds without being renewed, in ms; default 60 000. Renewed at a third of it. */
  readonly ttlMs?: number
}

/**
 * An entry is put by what is known of its address. After an absence of this process that may be minutes old, and the address another
 * pod's: nothing is put or renewed until entries were desired by what a watch has shown since.
 */
export interface Knowledge {
  /** When this process was last back from an absence. */
  resumedAt(): Millis
  /** Up to when everything is known, now. */
  knownAt(): Millis
}

const ALWAYS_HERE: Knowledge = { resumedAt: () => -Infinity, knownAt: () => -Infinity }

interface Known {
  gateway: GatewayFact
  readonly lane: BarrierLane
  readonly reader: GatewayStateReader
  readonly identity: Identity
  /** What it should hold. */
  readonly wanted: { entries: ReadonlyMap<PodUid, DesiredEntry> }
}

export function createBarrierKeeper({
  api,
  wrap = api => api,
  clock,
  log,
  knowledge = ALWAYS_HERE,
  ttlMs = 60_000
}: BarrierKeeperOptions): BarrierKeeper {
  const client = createBarrierClient(api)
  const lanes = new Map<string, Known>()
  const closing = new Set<Promise<unknown>>()
  const listeners = createListeners()
  let desired: readonly DesiredDrain[] = []
  let desiredBy = -Infinity

  const close = (id: string, { lane, reader }: Known): void => {
    lanes.delete(id)
    const work: Promise<unknown> = Promise.all([lane.stop(), reader.stop()]).finally(() =>
      closing.delete(work)
    )
    closing.add(work)
  }
  const mayPut = () => desiredBy >= knowledge.resumedAt()
  /** What is as it was stays the same object: a lane sees at a glance that it has put it already. */
  const desireAt = (
    id: string,
    before: ReadonlyMap<PodUid, DesiredEntry>
  ): ReadonlyMap<PodUid, DesiredEntry> =>
    new Map(
      desired.map(drain => {
        const entry = entryAt(drain, id)
        const known = before.get(entry.uid)
        return [entry.uid, known && known.watch === entry.watch && samePut(known, entry) ? known : entry]
      })
    )

  return {
    desire(list) {
      const wasBarred = !mayPut()
      desiredBy = knowledge.knownAt()
      if (wasBarred && mayPut()) for (const { lane } of lanes.values()) lane.look()
      desired = list
      for (const [id, { lane, wanted }] of lanes) {
        const before = wanted.entries
        wanted.entries = desireAt(id, before)
        const isNew = wanted.entries.values().some(entry => before.get(entry.uid) !== entry)
        if (isNew || wanted.entries.size !== before.size) lane.look()
      }
    },
    gateways(list) {
      const current = new Map(list.map(gateway => [gateway.id, gateway]))
      for (const [id, known] of lanes) if (current.get(id)?.ip !== known.gateway.ip) close(id, known)
      for (const gateway of current.values()) {
        const old = lanes.get(gateway.id)
        if (old) {
          const restarted = old.gateway.ready !== gateway.ready
          old.gateway = gateway
          if (restarted) old.lane.again()
          continue
        }
        const api = wrap(client.at(gateway.ip))
        const tell = () => listeners.tell()
        const gatewayClock = createGatewayClock()
        const identity = createIdentity(gateway.byHand === true)
        const wanted = { entries: desireAt(gateway.id, new Map()) }
        const lane = createBarrierLane({
          api,
          clock,
          gatewayClock,
          identity,
          log: log.child({ gateway: gateway.name }),
          ttlMs,
          desired: () => wanted.entries,
          mayPut,
          tell
        })
        let instance: string | undefined
        const reader = readGatewayState({
          api,
          clock,
          gatewayClock,
          identity,
          isHolding: () => desired.length > 0,
          read: (told, askedAt) => lane.compare(told, askedAt),
          tell() {
            const now = reader.state().told?.instance
            // Restarted with nothing under way that would have shown it: it has forgotten the entries that are held.
            if (instance !== undefined && now !== instance && !identity.isSeveral()) lane.again()
            instance = now
            tell()
          }
        })
        lanes.set(gateway.id, { gateway, lane, reader, identity, wanted })
      }
    },
    reading: (uid, gatewayId) => lanes.get(gatewayId)?.lane.reading(uid),
    doubt(gatewayId) {
      const known = lanes.get(gatewayId)
      if (!known) return ''
      const instance = known.identity.instance()
      const twin = [...lanes.values()].find(
        other => other !== known && instance !== undefined && other.identity.instance() === instance
      )
      if (twin && (known.identity.isOpen() || known.identity.doubt() === ''))
        return twinDoubt(twin.gateway.name)
      return known.identity.doubt()
    },
    isKnown: mayPut,
    entries: () => desired.flatMap(drain => entriesOf(entryAt(drain, ''), ttlMs)),
    state: gatewayId => lanes.get(gatewayId)?.reader.state(),
    onChange: listener => listeners.add(listener),
    async stop() {
      for (const [id, known] of lanes) close(id, known)
      await Promise.all(closing)
      client.close()
    }
  }
}
