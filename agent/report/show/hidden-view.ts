import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { LeadsTo } from '../../rules/plan/leads-to.ts'
import { everyHidden, type HiddenParts } from '../../round/gather/hidden-places.ts'
import type { Sources } from '../../round/gather/sources.ts'

/** The pause after a search, as a multiple of its duration. With 10,000 pods a search takes up to 100 ms, and something always changes. */
const REST = 100

interface HiddenViewParts {
  readonly cluster: HiddenParts['cluster']
  readonly inventory: HiddenParts['inventory'] & Pick<Sources['inventory'], 'version' | 'readAt'>
}

/**
 * The places that hide pods, for a snapshot. It searches again after the holders or the watched objects have changed, and returns the
 * same list until then.
 */
export function createHiddenView(
  parts: HiddenViewParts,
  clock: Pick<Clock, 'now'>,
  coversL4: () => boolean = () => false
): () => readonly LeadsTo[] {
  let found: readonly LeadsTo[] = []
  let of: string | undefined
  let restUntil: Millis = -Infinity
  return () => {
    const { cluster, inventory } = parts
    if (inventory.readAt() === undefined) return found
    const watched = cluster.parts().map(({ synced, counters: { events, lists } }) => [synced, events, lists])
    const isCovered = coversL4()
    const version = JSON.stringify([inventory.version(), isCovered, ...watched])
    const from = clock.now()
    if (version === of || from < restUntil) return found
    found = everyHidden(parts, isCovered)
    of = version
    const to = clock.now()
    restUntil = to + REST * (to - from)
    return found
  }
}
