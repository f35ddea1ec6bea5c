import type { Clock } from '../../base/clock.ts'
import type { GatewayFact } from '../../rules/drain/facts.ts'
import type { ReadGateway, Sighting } from '../../gateway/apisix/control-api.ts'

/** The nodes that each gateway listed when a part of the agent last read it: one of the three sides that `difference` compares. */
export interface Survey {
  /** Reads a gateway, and remembers what it showed. */
  readonly read: ReadGateway
  /** Sets the complete list of gateways. Each is read at intervals while it is in the list. */
  gateways(list: readonly GatewayFact[]): void
  sighting(gatewayId: string): Sighting | undefined
  /** Called when a client waits for the gateways' lists: reads are more frequent for a while. */
  hurry(): void
  stop(): Promise<void>
}

interface SurveyOptions {
  readonly read: ReadGateway
  readonly clock: Clock
}

/** The pause between two reads: `ms`, or `times` the last read's duration if that is longer. So reads take little of a worker's time. */
const PAUSE = { usual: { ms: 15_000, times: 100 }, hurried: { ms: 1000, times: 20 } }
const LOOK_MS = 1000
/** For how long a client counts as waiting, in ms. */
const HURRIED_MS = 5000

interface Lane {
  readonly ip: string
  readonly ended: AbortController
  sighting: Sighting | undefined
}

export function createSurvey({ read, clock }: SurveyOptions): Survey {
  const lanes = new Map<string, Lane>()
  const running = new Set<Promise<void>>()
  let hurriedUntil = -Infinity

  const reading: ReadGateway = async (host, signal) => {
    const sighting = await read(host, signal)
    for (const lane of lanes.values()) {
      const isNewer = sighting.beganAt > (lane.sighting?.beganAt ?? -Infinity)
      if (lane.ip === host && isNewer) lane.sighting = sighting
    }
    return sighting
  }

  const follow = async (lane: Lane): Promise<void> => {
    const { signal } = lane.ended
    let readAt = -Infinity
    let tookMs = 0
    while (!signal.aborted) {
      const { ms, times } = clock.now() < hurriedUntil ? PAUSE.hurried : PAUSE.usual
      const due = Math.max(readAt, lane.sighting?.beganAt ?? -Infinity) + Math.max(ms, tookMs * times)
      if (clock.now() < due) {
        // Checked every second, because other parts read too, and a client may begin to wait.
        await clock.sleep(LOOK_MS, signal).catch(() => {})
        continue
      }
      const beganAt = clock.now()
      // The probe reports a gateway that cannot be read.
      await reading(lane.ip, signal).catch(() => {})
      readAt = clock.now()
      tookMs = readAt - beganAt
    }
  }

  const close = (id: string, lane: Lane): void => {
    lane.ended.abort()
    lanes.delete(id)
  }

  return {
    read: reading,
    gateways(list) {
      const current = new Map(list.map(gateway => [gateway.id, gateway]))
      for (const [id, lane] of lanes) if (current.get(id)?.ip !== lane.ip) close(id, lane)
      for (const { id, ip } of current.values()) {
        if (lanes.has(id)) continue
        const lane: Lane = { ip, ended: new AbortController(), sighting: undefined }
        lanes.set(id, lane)
        const work = follow(lane).finally(() => running.delete(work))
        running.add(work)
      }
    },
    sighting: id => lanes.get(id)?.sighting,
    hurry: () => void (hurriedUntil = clock.now() + HURRIED_MS),
    async stop() {
      for (const [id, lane] of lanes) close(id, lane)
      await Promise.all(running)
    }
  }
}
