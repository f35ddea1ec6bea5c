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
