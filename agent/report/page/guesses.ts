import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'

/** Bounds how often a token can be guessed from one address. */
interface Guesses {
  /** Seconds until the address may try again; 0: now. */
  waitSeconds(address: string): number
  wrong(address: string): void
}

/** Wrong tokens that one address may send within a minute; then it must wait until the minute is over. */
export const MOST = 10
export const WITHIN_MS = 60_000
/** How many addresses are remembered; beyond that, the oldest is forgotten. */
const ADDRESSES = 1000

interface Tries {
  readonly since: Millis
  readonly count: number
}

/** Behind a proxy all users share its address, and ten wrong tokens a minute among them: still enough for people. */
export function createGuesses(clock: Pick<Clock, 'now'>): Guesses {
  const tries = new Map<string, Tries>()
  const current = (address: string): Tries | undefined => {
    const known = tries.get(address)
    if (known && clock.now() - known.since < WITHIN_MS) return known
    tries.delete(address)
    return undefined
  }
  return {
    waitSeconds(address) {
      const known = current(address)
      if (!known || known.count < MOST) return 0
      return Math.max(1, Math.ceil((known.since + WITHIN_MS - clock.now()) / 1000))
    },
    wrong(address) {
      const { since, count } = current(address) ?? { since: clock.now(), count: 0 }
      tries.set(address, { since, count: count + 1 })
      const [oldest] = tries.keys()
      if (tries.size > ADDRESSES && oldest !== undefined) tries.delete(oldest)
    }
  }
}
