import type { Confirmation } from './gateways/options.ts'
import type { Store } from './kubernetes/store.ts'
import { now } from './now.ts'

/** Sync lag by the sandbox's own clocks: it is both ends of it, so it need not take the agent's word for anything. By `now()`. */
export interface SyncLags {
  /** When the API server committed the deletion of a pod. */
  decidedAt(uid: string): number | undefined
  /** When the last of the gateways had confirmed; `undefined` while one has not. */
  confirmedAt(uid: string): number | undefined
  /** From the one to the other, in ms. */
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
