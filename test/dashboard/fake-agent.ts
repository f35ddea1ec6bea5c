import { systemClock } from '../../agent/base/clock.ts'
import type { DashboardConfig } from '../../agent/config/config.ts'
import { loadAssets } from '../../agent/report/page/dashboard.ts'
import { createGuard } from '../../agent/report/page/guard.ts'
import { createApp } from '../../agent/hook/app.ts'
import { listen, hookPolicy } from '../../agent/hook/listen.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { ensureDashboard } from '../../scripts/dashboard.ts'
import { manualHolds, serveParts } from '../build/serve.ts'

/** The agent's real HTTP side, around a snapshot that a test sets. */
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
    dashboard: { guard, assets: loadAssets(), state: () => JSON.stringify(snapshot) }
  })
  const listening = await listen(createApp(parts), { host: '127.0.0.1', port }, hookPolicy(10))
  const { server } = listening
  // Like a real agent, which has at least one round a second.
  const heartbeat = setInterval(() => void (snapshot = { ...snapshot, at: snapshot.at + 1000 }), 1000)
  return {
    url: `http://127.0.0.1:${listening.port}`,
    show: next => void (snapshot = next),
    async close() {
      clearInterval(heartbeat)
      server.closeAllConnections()
      await listening.close()
    }
  }
}
