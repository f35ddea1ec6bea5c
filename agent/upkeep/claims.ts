import type { ServiceFact } from '../drain/facts.ts'
import { serviceName, settleClaims, type Claim, type Settled } from '../members/claim.ts'
import type { HolderKey } from '../plan/holder.ts'

/** The claims of Services on holders, and the problems of those that cannot be met. The only owner of that state. */
export interface Claims {
  /** Reads the claims again if a Service has changed since. `true`: they may have changed. */
  refresh(): boolean
  all(): ReadonlyMap<HolderKey, Claim>
  /** The problems of the claims as written, by Service (`namespace/name`). */
  problems(): ReadonlyMap<string, string>
  /** Reports each problem once, again if its text changes, and once more when it is over. */
  report(found: ReadonlyMap<string, string>): void
  reported(): ReadonlyMap<string, string>
}

/**
 * @param asking the Services with claims; the same list object until one of them changes
 * @param told called with `undefined` when the problem is over
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
