import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { Log } from '../base/log.ts'
import { createAgents } from '../report/peers/agents.ts'
import type { Brief } from '../report/peers/book.ts'
import { loadAssets } from '../report/page/assets.ts'
import type { DashboardParts } from '../report/page/dashboard.ts'
import { onceASecond } from '../report/metrics/exposition.ts'
import { createGuard } from '../report/page/guard.ts'
import type { Listening } from '../hook/listen.ts'
import type { Snapshot } from '../report/snapshot/snapshot.ts'
import { createStream, type Stream } from '../report/page/stream.ts'

/** The dashboard's parts: its pages, the other agents, and the stream, which opens once the server listens. */
export interface Page {
  readonly parts: DashboardParts
  /** The state of all agents. */
  snapshot(): Snapshot
  open(listening: Listening): void
  /** A round has ended. */
  poke(): void
  /** See `Agents.handOver`. */
  handOver(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

interface PageOptions {
  readonly config: Config['serve']['dashboard']
  /** Of this agent alone; `brief` leaves out the holders, which take the longest. */
  readonly snapshot: () => Snapshot
  readonly brief: () => Brief
  readonly clock: Clock
  readonly log: Log
}

/** `undefined` if the dashboard is not enabled. */
export function createPage({ config, snapshot: own, brief, clock, log }: PageOptions): Page | undefined {
  if (!config) return undefined
  const guard = createGuard(config.auth, clock)
  const assets = loadAssets()
  if (!assets) log.warn('the dashboard has not been built: npm run build:dashboard')
  const agents = createAgents({
    peers: config.peers,
    brief,
    pass: () => guard.pass(),
    changed: () => stream?.poke(),
    clock,
    log
  })
  const snapshot = onceASecond(clock, () => agents.together(own()))
  let stream: Stream | undefined
  return {
    parts: { guard, assets, share: (of, after, to) => agents.share(of, after, to) },
    snapshot,
    open({ server }) {
      stream = createStream({ server, guard, origins: config.origins, snapshot, clock, log })
      agents.start()
    },
    poke: () => stream?.poke(),
    handOver: signal => agents.handOver(signal),
    async close() {
      await Promise.all([agents.stop(), stream?.close()])
    }
  }
}
