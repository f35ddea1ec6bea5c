import type { ServiceFact } from '../drain/facts.ts'
import { serviceName, settleClaims, type Claim, type Settled } from '../members/claim.ts'
import type { HolderKey } from '../plan/holder.ts'

/** The claims of Services on holders, and what is wrong with those that cannot be met. The only owner of that state. */
export interface Claims {
  /** Reads them anew if a Service changed since. `true`: they may be others now. */
  refresh(): boolean
  all(): ReadonlyMap<HolderKey, Claim>
  /** What is wrong with the claims as they are written, by Service (`namespace/name`). */
  problems(): ReadonlyMap<string, string>
  /** Reports each problem once, until it reads differently, and once that it is over. */
  report(found: ReadonlyMap<string, string>): void
  reported(): ReadonlyMap<string, string>
}

/**
 * @param asking the Services that claim something; the same list as long as none of them changes
 * @param told called with `undefined` when nothing is wrong any more
 */
export function createClaims(
  asking: () => readonly ServiceFact[],
  told: (service: ServiceFact, why: string | undefined) => void
): Claims {
  let asked: readonly ServiceFact[] | undefined
  let settled: Settled = { claims: new Map(), problems: new Map() }
  let reported = new Map<string, string>()
  return {
    refresh() {
      if (asked === asking()) return false
      asked = asking()
      settled = settleClaims(asked)
      return true
    },
    all: () => settled.claims,
    problems: () => settled.problems,
    report(found) {
      for (const service of asking()) {
        const name = serviceName(service)
        if (found.get(name) !== reported.get(name)) told(service, found.get(name))
      }
      reported = new Map(found)
    },
    reported: () => reported
  }
}
