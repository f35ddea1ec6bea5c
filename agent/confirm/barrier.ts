import type { Logger } from 'pino'

import type { Clock } from '../clock.ts'
import type { GatewayFact, NodeKey, PodUid } from '../drain/facts.ts'
import type { BarrierOptions } from '../gateway/barrier-api.ts'
import type { BarrierReading } from './evidence.ts'

/** What the deny-list of every gateway should hold for one drain. */
export interface DesiredEntry {
  readonly uid: PodUid
  /** Bare hosts, or hosts with ports where the pod shares its host's address. */
  readonly nodes: readonly NodeKey[]
  readonly state: 'draining' | 'sealed'
  /** Still being waited for: its in-flight is long-polled. */
  readonly watch: boolean
}

/** Keeps the deny-list of every gateway as desired, and reads what it says. */
export interface BarrierKeeper {
  /** The complete list: a uid that is not in it any more is deleted from every gateway. */
  desire(list: readonly DesiredEntry[]): void
  /** The complete list of gateways; a new one is pushed everything. */
  gateways(list: readonly GatewayFact[]): void
  reading(uid: PodUid, gatewayId: string): BarrierReading | undefined
  /** After every change of a reading. Returns what ends it. */
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

export declare function createBarrierKeeper(options: BarrierKeeperOptions): BarrierKeeper
