import type { Clock } from '../../base/clock.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import type { BarrierApi } from '../apisix/barrier-api.ts'
import type { BarrierGateway, BarrierState } from '../apisix/barrier-wire.ts'

/** What agents tell each other by the entries: how they have answered the hooks. */
export interface ToldAnswers {
  readonly own: ReadonlyMap<PodUid, { readonly at: Millis; readonly text: string }>
  read(list: readonly BarrierState[], askedAt: Millis): void
}

/** The least time between two lists, in ms: they cost the more the more entries there are. */
const EVERY_MS = 700

interface EntryListOptions {
  readonly api: Pick<BarrierApi, 'entries'>
  readonly clock: Clock
  readonly read: (list: readonly BarrierState[], askedAt: Millis) => void
}

/** Reads the list of a gateway's entries once, and again whenever a report of the gateway shows that its entries have changed. */
export function watchEntryList({ api, clock, read }: EntryListOptions): {
  /** Takes a report of the gateway. */
  heard(told: Pick<BarrierGateway, 'instance' | 'held'>): void
} {
  let known: string | undefined
  let askedAt = -Infinity
  let isAsking = false
  return {
    heard({ instance, held }) {
      // The end of an entry's ttl changes the number only.
      const state = `${instance} ${held.generation} ${held.entries}`
      const now = clock.now()
      if (state === known || isAsking || now < askedAt + EVERY_MS) return
      askedAt = now
      isAsking = true
      const took = (list: readonly BarrierState[]): void => {
        isAsking = false
        known = state
        read(list, now)
      }
      // After a failure, the next report asks again.
      api.entries().then(took, () => {
        isAsking = false
      })
    }
  }
}
