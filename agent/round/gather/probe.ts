import type { Logger } from 'pino'

import type { Clock } from '../../base/clock.ts'
import { isConnectionRefused } from '../../base/errors.ts'
import type { GatewayFact, Millis, PodUid } from '../../rules/drain/facts.ts'
import type { ReadGateway, Sighting } from '../../gateway/apisix/control-api.ts'
import { createListeners } from '../../base/listeners.ts'
import type { Observation, Wanted } from '../../rules/proof/evidence.ts'
import { createControlReads, type ControlReads } from './control-reads.ts'
import { doubled } from '../../rules/drain/times.ts'

/** Reads the Control API of every gateway: all the time while some drain wants evidence, else at intervals. One read serves all. */
export interface Probe {
  /** Sets the complete list. Drains that are not in it any more are forgotten. */
  want(list: readonly Wanted[]): void
  /** Sets the complete list of gateways. */
  gateways(list: readonly GatewayFact[]): void
  observation(uid: PodUid, gatewayId: string): Observation | undefined
  /** The nodes that the gateway listed when it was last read. */
  sighting(gatewayId: string): Sighting | undefined
  /** When the gateway was last read, and the result; `undefined` before the first read. */
  freshness(gatewayId: string): Freshness | undefined
  /** Called when a client waits for the gateways' lists: reads at intervals are more frequent for a while. */
  hurry(): void
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
/**
 * From a read to the next while no drain wants any: `ms`, or `times` the last read's duration if that is longer. So reads take little of a
 * worker's time.
 */
const IDLE = { usual: { ms: 15_000, times: 100 }, hurried: { ms: 1000, times: 20 } }
const LOOK_MS = 1000
/** For how long a client counts as waiting, in ms. */
const HURRIED_MS = 5000

interface Lane {
  readonly gateway: GatewayFact
  readonly observing: ControlReads
  readonly ended: AbortController
  readers: number
  failures: number
  isTold: boolean
  movedAt: number
  tookMs: number
  sighting: Sighting | undefined
  freshness: Freshness | undefined
}

export function createProbe({ read, clock, log, parallel = 2 }: ProbeOptions): Probe {
  const lanes = new Map<string, Lane>()
  const listeners = createListeners()
  const running = new Set<Promise<void>>()
  let wanted: readonly Wanted[] = []
  let hurriedUntil = -Infinity

  const readOnce = async (lane: Lane): Promise<void> => {
    const { gateway, observing, ended } = lane
    const beganAt = clock.now()
    try {
      const sighting = await read(gateway.ip, ended.signal)
      if (lane.isTold) log.info({ gateway: gateway.name }, 'gateway can be observed again')
      lane.isTold = false
      lane.failures = 0
      const now = clock.now()
      lane.tookMs = now - beganAt
      if (sighting.beganAt >= (lane.sighting?.beganAt ?? -Infinity)) lane.sighting = sighting
      lane.freshness = { lastSuccessAt: now, lastAttemptAt: now, problem: '', refused: false }
      if (wanted.length > 0 && observing.seen(sighting, now)) lane.movedAt = now
    } catch (error) {
      if (ended.signal.aborted) return
      lane.failures++
      // Without a drain, nothing depends on it.
      if (wanted.length > 0 && !lane.isTold)
        log.warn({ err: error, gateway: gateway.name }, 'gateway cannot be observed')
      lane.isTold ||= wanted.length > 0
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

  /** Checks every second whether a read is due: drains read too, and a client may begin to wait. */
  const idler = async (lane: Lane): Promise<void> => {
    while (!lane.ended.signal.aborted) {
      const { ms, times } = clock.now() < hurriedUntil ? IDLE.hurried : IDLE.usual
      const due = (lane.freshness?.lastAttemptAt ?? -Infinity) + Math.max(ms, lane.tookMs * times)
      if (wanted.length === 0 && clock.now() >= due) await readOnce(lane)
      await clock.sleep(LOOK_MS, lane.ended.signal).catch(() => {})
    }
  }

  const run = (loop: Promise<void>): void => {
    const work = loop.finally(() => running.delete(work))
    running.add(work)
  }
  const staff = (lane: Lane): void => {
    for (; wanted.length > 0 && lane.readers < parallel; lane.readers++) run(reader(lane))
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
          isTold: false,
          movedAt: clock.now(),
          tookMs: 0,
          sighting: undefined,
          freshness: undefined
        }
        lanes.set(gateway.id, lane)
        staff(lane)
        run(idler(lane))
      }
    },
    observation: (uid, gatewayId) => lanes.get(gatewayId)?.observing.get(uid),
    sighting: gatewayId => lanes.get(gatewayId)?.sighting,
    freshness: gatewayId => lanes.get(gatewayId)?.freshness,
    hurry: () => void (hurriedUntil = clock.now() + HURRIED_MS),
    onChange: listener => listeners.add(listener),
    async stop() {
      wanted = []
      for (const lane of lanes.values()) close(lane)
      await Promise.all(running)
    }
  }
}
