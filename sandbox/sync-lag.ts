import type { Confirmed } from './apisix/barrier.ts'
import type { Confirmation } from './gateways/options.ts'
import type { Store } from './kubernetes/store.ts'
import { now } from './now.ts'

/** Sync lag by the sandbox's own clocks: it measures both ends itself and uses no figure of the agent. By `now()`. */
export interface SyncLags {
  /** When the API server committed the deletion of a pod. */
  decidedAt(uid: string): number | undefined
  /** From the commit of a pod's deletion until the last gateway has confirmed `what`, in ms; `undefined` until then. */
  lagOf(uid: string, what: Confirmed): number | undefined
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
  return {
    decidedAt: uid => decided.get(uid),
    lagOf(uid, what) {
      const from = decided.get(uid)
      const confirmed = gateways.confirmations().filter(one => one.uid === uid && one.what === what)
      if (from === undefined || confirmed.length < gateways.gateways.length) return undefined
      return Math.max(...confirmed.map(({ at }) => at)) - from
    }
  }
}
