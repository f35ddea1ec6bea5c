import type { Logger } from 'pino'

import type { Clock } from '../clock.ts'
import type { GatewayFact, PodUid } from '../drain/facts.ts'
import { createBarrierClient, type BarrierOptions } from '../gateway/barrier-api.ts'
import { createListeners } from '../listeners.ts'
import { createBarrierLane, type BarrierLane } from './barrier-lane.ts'
import type { DesiredEntry } from './barrier-reading.ts'
import type { BarrierReading } from './evidence.ts'

export type { DesiredEntry } from './barrier-reading.ts'

/** Keeps the deny-list of every gateway as desired, and reads what it says. */
export interface BarrierKeeper {
  /** The complete list: a uid that is not in it any more is deleted from every gateway. */
  desire(list: readonly DesiredEntry[]): void
  /** The complete list of gateways; a new one, and one whose readiness has changed, is told everything. */
  gateways(list: readonly GatewayFact[]): void
  /** The same object until the gateway has said something else. */
  reading(uid: PodUid, gatewayId: string): BarrierReading | undefined
  /** After every answer and every failure. Returns what ends it. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

export interface BarrierKeeperOptions {
  readonly api: BarrierOptions
  readonly clock: Clock
  readonly log: Logger
  /** How long an entry holds without being renewed, in ms; default 60 000. Renewed at a third of it. */
  readonly ttlMs?: number
}

export function createBarrierKeeper({
  api,
  clock,
  log,
  ttlMs = 60_000
}: BarrierKeeperOptions): BarrierKeeper {
  const client = createBarrierClient(api)
  const lanes = new Map<string, { gateway: GatewayFact; readonly lane: BarrierLane }>()
  const closing = new Set<Promise<void>>()
  const listeners = createListeners()
  let desired: ReadonlyMap<PodUid, DesiredEntry> = new Map()

  const close = (id: string, lane: BarrierLane): void => {
    lanes.delete(id)
    const work = lane.stop().finally(() => closing.delete(work))
    closing.add(work)
  }

  return {
    desire(list) {
      if (list.length === desired.size && list.every(entry => isSame(entry, desired.get(entry.uid)))) return
      desired = new Map(list.map(entry => [entry.uid, entry]))
      for (const { lane } of lanes.values()) lane.look()
    },
    gateways(list) {
      const current = new Map(list.map(gateway => [gateway.id, gateway]))
      for (const [id, { gateway, lane }] of lanes) if (current.get(id)?.ip !== gateway.ip) close(id, lane)
      for (const gateway of current.values()) {
        const known = lanes.get(gateway.id)
        if (known) {
          const restarted = known.gateway.ready !== gateway.ready
          known.gateway = gateway
          if (restarted) known.lane.again()
          continue
        }
        const lane = createBarrierLane({
          api: client.at(gateway.ip),
          clock,
          log: log.child({ gateway: gateway.name }),
          ttlMs,
          desired: () => desired,
          tell: () => listeners.tell()
        })
        lanes.set(gateway.id, { gateway, lane })
      }
    },
    reading: (uid, gatewayId) => lanes.get(gatewayId)?.lane.reading(uid),
    onChange: listener => listeners.add(listener),
    async stop() {
      for (const [id, { lane }] of lanes) close(id, lane)
      await Promise.all(closing)
      client.close()
    }
  }
}

const isSame = (a: DesiredEntry, b: DesiredEntry | undefined): boolean =>
  a.state === b?.state && a.watch === b.watch && a.nodes.join(' ') === b.nodes.join(' ')
