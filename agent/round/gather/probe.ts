import type { Logger } from 'pino'

import type { Clock } from '../../base/clock.ts'
import { isConnectionRefused } from '../../base/errors.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { ReadGateway } from '../../gateway/apisix/control-api.ts'
import { createListeners } from '../../base/listeners.ts'
import type { Observation, Wanted } from '../../rules/proof/evidence.ts'
import { createControlReads, type ControlReads } from './control-reads.ts'
import { doubled } from '../../rules/drain/times.ts'

/** Reads the Control API of every gateway while some drain wants evidence. One read serves all drains. */
export interface Probe {
  /** Sets the complete list. Drains that are not in it any more are forgotten. An empty list ends the reads. */
  want(list: readonly Wanted[]): void
  /** Sets the complete list of gateways. */
  gateways(list: readonly GatewayFact[]): void
  observation(uid: PodUid, gatewayId: string): Observation | undefined
  /** When the gateway was last read, and the result; `undefined` if no drain has wanted it yet. */
  freshness(gatewayId: string): Freshness | undefined
  /** Called after every read. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

/** The times are `null` before the first read. An empty `problem`: the last attempt succeeded. */
interface Freshness {
  readonly lastSuccessAt: Millis | null
  readonly lastAttemptAt: Millis | null
  readonly problem: string
  /** The last connection was refused: nothing listened at the address. */
  readonly refused: boolean
}

interface ProbeOptions {
  readonly read: ReadGateway
  readonly clock: Clock
  readonly log: Logger
  /** Concurrent reads per gateway, each on fresh connections; default 2. */
  readonly parallel?: number
}

/** The pause between two reads, in ms: short while something changes, later a twentieth of the time since the last change. */
const PAUSE_MS = { shortest: 10, longest: 500, share: 20 }
/** The pause after a failed read, in ms; doubled with each consecutive failure. */
const BACK_OFF_MS = { first: 50, longest: 5000 }

interface Lane {
  readonly gateway: GatewayFact
  readonly observing: ControlReads
  readonly ended: AbortController
  readers: number
  failures: number
  movedAt: number
  freshness: Freshness | undefined
}

export function createProbe({ read, clock, log, parallel = 2 }: ProbeOptions): Probe {
  const lanes = new Map<string, Lane>()
  const listeners = createListeners()
  const running = new Set<Promise<void>>()
  let wanted: readonly Wanted[] = []

  const readOnce = async (lane: Lane): Promise<void> => {
    const { gateway, observing, ended } = lane
    try {
      const sighting = await read(gateway.ip, ended.signal)
      if (lane.failures > 0) log.info({ gateway: gateway.name }, 'gateway can be observed again')
      lane.failures = 0
      const now = clock.now()
      lane.freshness = { lastSuccessAt: now, lastAttemptAt: now, problem: '', refused: false }
      if (observing.seen(sighting, now)) lane.movedAt = now
    } catch (error) {
      if (ended.signal.aborted) return
      if (lane.failures++ === 0) log.warn({ err: error, gateway: gateway.name }, 'gateway cannot be observed')
      const problem = (error as Error).message
      const lastSuccessAt = lane.freshness?.lastSuccessAt ?? null
      const refused = isConnectionRefused(error)
      lane.freshness = { lastSuccessAt, lastAttemptAt: clock.now(), problem, refused }
      observing.failed(problem)
    }
    listeners.tell()
  }

  const pauseAfter = ({ failures, movedAt }: Lane): number =>
    failures > 0
      ? doubled(BACK_OFF_MS, failures - 1)
      : Math.max(PAUSE_MS.shortest, Math.min(PAUSE_MS.longest, (clock.now() - movedAt) / PAUSE_MS.share))

  const reader = async (lane: Lane): Promise<void> => {
    while (wanted.length > 0 && !lane.ended.signal.aborted) {
      await readOnce(lane)
      await clock.sleep(pauseAfter(lane), lane.ended.signal).catch(() => {})
    }
    lane.readers--
  }

  const staff = (lane: Lane): void => {
    while (wanted.length > 0 && lane.readers < parallel) {
      lane.readers++
      const work = reader(lane).finally(() => running.delete(work))
      running.add(work)
    }
  }

  const close = (lane: Lane): void => {
    lane.ended.abort()
    lanes.delete(lane.gateway.id)
  }

  return {
    want(list) {
      wanted = list
      for (const lane of lanes.values()) {
        if (lane.observing.want(list)) lane.movedAt = clock.now()
        staff(lane)
      }
    },
    gateways(list) {
      const current = new Map(list.map(gateway => [gateway.id, gateway]))
      for (const lane of lanes.values()) if (current.get(lane.gateway.id)?.ip !== lane.gateway.ip) close(lane)
      for (const gateway of current.values()) {
        if (lanes.has(gateway.id)) continue
        const observing = createControlReads()
        observing.want(wanted)
        const ended = new AbortController()
        const lane = {
          gateway,
          observing,
          ended,
          readers: 0,
          failures: 0,
          movedAt: clock.now(),
          freshness: undefined
        }
        lanes.set(gateway.id, lane)
        staff(lane)
      }
    },
    observation: (uid, gatewayId) => lanes.get(gatewayId)?.observing.get(uid),
    freshness: gatewayId => lanes.get(gatewayId)?.freshness,
    onChange: listener => listeners.add(listener),
    async stop() {
      wanted = []
      for (const lane of lanes.values()) close(lane)
      await Promise.all(running)
    }
  }
}
