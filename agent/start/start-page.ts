import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../base/log.ts'
import { loadAssets } from '../report/page/assets.ts'
import type { DashboardParts } from '../report/page/dashboard.ts'
import { onceASecond } from '../report/metrics/exposition.ts'
import { createGuard } from '../report/page/guard.ts'
import type { Listening } from '../hook/listen.ts'
import type { Snapshot } from '../report/snapshot/snapshot.ts'
import { createStream, type Stream } from '../report/page/stream.ts'

/** The dashboard's parts: its pages, and the stream, which opens once the server listens. */
export interface Page {
  readonly parts: DashboardParts
  snapshot(): Snapshot
  open(listening: Listening): void
  /** A round has ended. */
  poke(): void
  close(): Promise<void>
}

interface PageOptions {
  readonly config: Config['serve']['dashboard']
  readonly snapshot: () => Snapshot
  readonly clock: Clock
  readonly log: Log
}

/** `undefined` if the dashboard is not enabled. */
export function createPage({ config, snapshot: own, clock, log }: PageOptions): Page | undefined {
  if (!config) return undefined
  const guard = createGuard(config.auth, clock)
  const assets = loadAssets()
  if (!assets) log.warn('the dashboard has not been built: npm run build:dashboard')
  const snapshot = onceASecond(clock, own)
  let stream: Stream | undefined
  return {
    parts: { guard, assets },
    snapshot,
    open({ server }) {
      stream = createStream({ server, guard, origins: config.origins, snapshot, clock, log })
    },
    poke: () => stream?.poke(),
    async close() {
      await stream?.close()
    }
  }
}
