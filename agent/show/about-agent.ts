import type { Config } from '../config/types.ts'
import type { Leadership } from '../lead/leader.ts'
import type { Reach, Snapshot } from '../page/snapshot.ts'

/** Where the agent asks for evidence, for display. */
export function reachOf({ apisix: { admin, control, barrier } }: Config): Reach {
  return {
    admin: admin.url,
    control: control.enabled ? { scheme: control.scheme, port: control.port } : null,
    barrier: barrier ? { scheme: barrier.scheme, port: barrier.port } : null
  }
}

/** Who leads, as the page shows it. */
export const leaderView = ({ leads, holder, lease, why }: Leadership): Snapshot['agent']['leader'] => ({
  leads,
  holder: holder ?? null,
  lease: lease ?? null,
  why
})
