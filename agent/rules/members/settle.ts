import type { ServiceFact } from '../drain/facts.ts'
import type { HolderKey } from '../plan/holder.ts'
import { claimsOf, serviceName, type Claim } from './claim.ts'

/** Every claim that counts, by holder, and the problems of the other claims, by Service (`namespace/name`). */
export interface Settled {
  readonly claims: ReadonlyMap<HolderKey, Claim>
  readonly problems: ReadonlyMap<string, string>
}

/** How many problems of one Service a message names. */
const TOLD = 8

/**
 * One claim for each holder. A claim that `sync.allow` does not list never counts. Of the other claims the oldest Service's counts, so
 * every agent settles them in the same way at any time, and a later Service changes nothing.
 *
 * @param allows whether the configuration lets this claim's namespace fill this upstream: `sync.allow`
 */
export function settleClaims(services: Iterable<ServiceFact>, allows: (claim: Claim) => boolean): Settled {
  const all: Claim[] = []
  const problems = new Map<string, string[]>()
  const tell = (service: ServiceFact, why: string) => {
    const name = serviceName(service)
    const told = problems.get(name)
    if (!told) problems.set(name, [why])
    else if (told.length < TOLD) told.push(why)
  }
  for (const service of services) {
    const read = claimsOf(service)
    for (const problem of read.problems) tell(service, problem)
    for (const claim of read.claims) {
      if (allows(claim)) all.push(claim)
      else tell(service, `sync.allow does not let namespace ${service.namespace} fill ${claim.holder}`)
    }
  }
  const claims = new Map<HolderKey, Claim>()
  for (const [holder, rivals] of Map.groupBy(all, claim => claim.holder)) {
    const kept = rivals.reduce((a, b) => (isOlder(b, a) ? b : a))
    claims.set(holder, kept)
    for (const { service } of rivals)
      if (service !== kept.service)
        tell(service, `${holder} follows ${serviceName(kept.service)}: this claim changes nothing`)
  }
  const joined = [...problems].map(([name, told]) => [name, told.join('; ')] as const)
  return { claims, problems: new Map(joined) }
}

/** The uid decides between Services of the same second, so that all agents choose the same one. */
const isOlder = ({ service: a }: Claim, { service: b }: Claim): boolean =>
  a.createdAt === b.createdAt ? a.uid < b.uid : a.createdAt < b.createdAt
