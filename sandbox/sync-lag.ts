import type { Confirmation } from './gateways/options.ts'
import type { Store } from './kubernetes/store.ts'
import { now } from './now.ts'

/** Sync lag by the sandbox's own clocks: it measures both ends and needs no figure of the agent's. By `now()`. */
export interface SyncLags {
  /** When the API server committed the deletion of a pod. */
  decidedAt(uid: string): number | undefined
  /** When the last gateway confirmed; `undefined` until then. */
  confirmedAt(uid: string): number | undefined
  /** From the decision to the confirmation, in ms. */
  lagOf(uid: string): number | undefined
}

export function measureSyncLags(
  store: Store,
  gateways: { readonly gateways: readonly unknown[]; confirmations(): readonly Confirmation[] }
): SyncLags {
  const decided = new Map<string, number>()
  store.onChange('pods', ({ object: { metadata } }) => {
    if (metadata.deletionTimestamp !== undefined && !decided.has(metadata.uid))
      decided.set(metadata.uid, now())
  })
  const lags: SyncLags = {
    decidedAt: uid => decided.get(uid),
    confirmedAt(uid) {
      const confirmed = gateways.confirmations().filter(confirmation => confirmation.uid === uid)
      if (confirmed.length < gateways.gateways.length) return undefined
      return Math.max(...confirmed.map(({ at }) => at))
    },
    lagOf(uid) {
      const [from, to] = [lags.decidedAt(uid), lags.confirmedAt(uid)]
      return from === undefined || to === undefined ? undefined : to - from
    }
  }
  return lags
}
