import type { Leadership } from '../lead/leader.ts'
import type { Snapshot } from '../page/snapshot.ts'

/** Who leads, as the page shows it. */
export const leaderView = ({ leads, holder, lease, why }: Leadership): Snapshot['agent']['leader'] => ({
  leads,
  holder: holder ?? null,
  lease: lease ?? null,
  why
})
