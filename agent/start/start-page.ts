import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { Log } from '../base/log.ts'
import { loadAssets } from '../page/assets.ts'
import type { DashboardParts } from '../page/dashboard.ts'
import { createGuard } from '../page/guard.ts'
import type { Listening } from '../hook/listen.ts'
import type { Snapshot } from '../page/snapshot.ts'
import { createStream, type Stream } from '../page/stream.ts'

/** The dashboard's parts: what the HTTP server serves, and the stream, opened once the server listens. */
export interface Page {
  readonly parts: DashboardParts
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
export function createPage({ config, snapshot, clock, log }: PageOptions): Page | undefined {
  if (!config) return undefined
  const guard = createGuard(config.auth, clock)
  const assets = loadAssets()
  if (!assets) log.warn('the dashboard has not been built: npm run build:dashboard')
  let stream: Stream | undefined
  return {
    parts: { guard, assets },
    open({ server }) {
      stream = createStream({ server, guard, origins: config.origins, snapshot, clock, log })
    },
    poke: () => stream?.poke(),
    close: async () => await stream?.close()
  }
}
