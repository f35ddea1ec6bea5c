import type { Logger } from 'pino'

import type { Clock } from '../clock.ts'
import type { GatewayFact, PodUid } from '../drain/facts.ts'
import type { ReadGateway } from '../gateway/control-api.ts'
import type { Observation, Wanted } from './evidence.ts'

/** Reads the Control API of every gateway for as long as some drain wants evidence. */
export interface Probe {
  /** The complete list: what is not in it any more is forgotten. An empty list ends the reading. */
  want(list: readonly Wanted[]): void
  /** The complete list of gateways. */
  gateways(list: readonly GatewayFact[]): void
  observation(uid: PodUid, gatewayId: string): Observation | undefined
  /** After every read that changed an observation. Returns what ends it. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

export interface ProbeOptions {
  readonly read: ReadGateway
  readonly clock: Clock
  readonly log: Logger
  /** Reads under way per gateway at the same time, each on fresh connections; default 2. */
  readonly parallel?: number
  /** From the end of one read to the next, in ms; default 10. */
  readonly pauseMs?: number
}

export declare function createProbe(options: ProbeOptions): Probe
