import { systemClock } from '../../agent/base/clock.ts'
import type { DashboardConfig } from '../../agent/config/config.ts'
import { loadAssets } from '../../agent/report/page/dashboard.ts'
import { createGuard } from '../../agent/report/page/guard.ts'
import { createApp } from '../../agent/hook/app.ts'
import { listen, hookPolicy } from '../../agent/hook/listen.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { createStream } from '../../agent/report/page/stream.ts'
import { ensureDashboard } from '../../scripts/dashboard.ts'
import { manualHolds, serveParts } from '../build/serve.ts'

/** The agent's real HTTP side, page and stream, around a snapshot that a test sets. */
export interface FakeAgent {
  readonly url: string
  show(snapshot: Snapshot): void
  close(): Promise<void>
}

export async function startFakeAgent(
  first: Snapshot,
  { port = 0, auth = { kind: 'none' } }: { port?: number; auth?: DashboardConfig['auth'] } = {}
): Promise<FakeAgent> {
  await ensureDashboard()
  let snapshot = first
  const guard = createGuard(auth, systemClock)
  const parts = serveParts(manualHolds(), systemClock, {
    snapshot: () => snapshot,
    dashboard: { guard, assets: loadAssets() }
  })
  const listening = await listen(createApp(parts), { host: '127.0.0.1', port }, hookPolicy(10))
  const { server } = listening
  const stream = createStream({
    server,
    guard,
    snapshot: () => snapshot,
    clock: systemClock,
    log: parts.log
  })
  // Like a real agent, which has at least one round a second.
  const heartbeat = setInterval(() => {
    snapshot = { ...snapshot, at: snapshot.at + 1000 }
    stream.poke()
  }, 1000)
  return {
    url: `http://127.0.0.1:${listening.port}`,
    show(next) {
      snapshot = next
      stream.poke()
    },
    async close() {
      clearInterval(heartbeat)
      await stream.close()
      server.closeAllConnections()
      await listening.close()
    }
  }
}
