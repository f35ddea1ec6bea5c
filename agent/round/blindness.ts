import { areLive, type Part } from '../kubernetes/reflect/watch-status.ts'
import type { Millis } from '../rules/drain/facts.ts'

/** How long a watch may be down before its knowledge is too old, in ms. */
export const BLIND_MS = 10_000

/** Whether a watch has been down for too long. */
interface Blindness {
  /** Called once per round. */
  look(live: boolean, now: Millis): void
  isBlind(now: Millis): boolean
}

export function createBlindness(): Blindness {
  let since: Millis | undefined
  return {
    look(live, now) {
      since = live ? undefined : (since ?? now)
    },
    isBlind: now => since !== undefined && now - since > BLIND_MS
  }
}

/**
 * Returns a function for each round: whether the list of gateways may lack a new gateway, because their watch alone has been down for too
 * long. If the watch of pods is down too, the API server cannot be reached. Then the list stays in use, because a gateway needs that server
 * to join.
 */
export function createOldGateways(parts: () => readonly Part[]): (now: Millis) => boolean {
  const watch = createBlindness()
  return now => {
    watch.look(areLive(parts(), ['gateways']), now)
    return watch.isBlind(now) && areLive(parts(), ['pods'])
  }
}
