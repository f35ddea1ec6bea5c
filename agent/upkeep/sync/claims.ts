import type { ServiceFact } from '../../rules/drain/facts.ts'
import { serviceName, type Claim } from '../../rules/members/claim.ts'
import { settleClaims, type Precedence, type Settled } from '../../rules/members/settle.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'

/** The claims of Services on holders, and the problems of those that cannot be met. The only owner of that state. */
interface Claims {
  /** Reads the claims again if a Service has changed since. `true`: they may have changed. */
  refresh(): boolean
  all(): ReadonlyMap<HolderKey, Claim>
  /** The problems of the claims as written, by Service (`namespace/name`). */
  problems(): ReadonlyMap<string, string>
  /** See `Settled.losers`. */
  losers(holder: HolderKey): readonly string[]
  /** Reports each problem once, again if its text changes, and once more when it is over. */
  report(found: ReadonlyMap<string, string>): void
  reported(): ReadonlyMap<string, string>
}

interface ClaimsOptions {
  /** The Services with claims; the same list object until one of them changes. */
  readonly asking: () => readonly ServiceFact[]
  readonly allows: Precedence['allows']
  /** The Services that the nodes of a holder are marked with. `undefined`: the holders were not read yet. */
  readonly marked: () => Precedence['followedBy'] | undefined
  /** Called with `undefined` when the problem is over. */
  readonly told: (service: ServiceFact, why: string | undefined) => void
}

const NONE: readonly string[] = []

export function createClaims({ asking, allows, marked, told }: ClaimsOptions): Claims {
  let asked: readonly ServiceFact[] | undefined
  let settled: Settled = { claims: new Map(), problems: new Map(), losers: new Map() }
  /** Whether `settled` rests on the marks. If not, it is a guess that must not bind later. */
  let isFirm = false
  let reported = new Map<string, string>()

  /** The Service that had the claim a moment ago; after a start of the agent, those that the marks name. */
  const followedBy = (holder: HolderKey): ReadonlySet<string> => {
    const before = isFirm ? settled.claims.get(holder) : undefined
    return before ? new Set([serviceName(before.service)]) : (marked()?.(holder) ?? new Set())
  }

  return {
    refresh() {
      if (asked === asking() && (isFirm || !marked())) return false
      asked = asking()
      settled = settleClaims(asked, { allows, followedBy })
      isFirm = marked() !== undefined
      return true
    },
    all: () => settled.claims,
    problems: () => settled.problems,
    losers: holder => settled.losers.get(holder) ?? NONE,
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
