import type { ServiceFact } from '../drain/facts.ts'
import type { HolderKey } from '../plan/holder.ts'
import { claimsOf, serviceName, type Claim } from './claim.ts'

/** Every claim that counts, by holder, and the problems of the other claims, by Service (`namespace/name`). */
export interface Settled {
  readonly claims: ReadonlyMap<HolderKey, Claim>
  readonly problems: ReadonlyMap<string, string>
}

/** The rules that decide between claims, apart from the Services themselves. */
export interface Precedence {
  /** Whether the configuration lets this claim's namespace fill this upstream: `sync.allow`. */
  readonly allows: (claim: Claim) => boolean
  /** Names of the Services that this holder follows already (`namespace/name`). */
  readonly followedBy: (holder: HolderKey) => ReadonlySet<string>
}

/** How many problems of one Service a message names. */
const TOLD = 8

/**
 * One claim for each holder. A claim that `sync.allow` does not list never counts. If several claims are left, the Service that the holder
 * follows already keeps the holder; otherwise the oldest Service gets it. So a later claim changes nothing.
 */
export function settleClaims(services: Iterable<ServiceFact>, { allows, followedBy }: Precedence): Settled {
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
    const names = followedBy(holder)
    const followed = rivals.filter(({ service }) => names.has(serviceName(service)))
    const kept = (followed.length > 0 ? followed : rivals).reduce((a, b) => (isOlder(b, a) ? b : a))
    claims.set(holder, kept)
    for (const { service } of rivals)
      if (service !== kept.service)
        tell(service, `${holder} follows ${serviceName(kept.service)}: this claim changes nothing`)
  }
  const joined = [...problems].map(([name, told]) => [name, told.slice(0, TOLD).join('; ')] as const)
  return { claims, problems: new Map(joined) }
}

/** The uid decides between Services of the same second, so that all agents choose the same one. */
const isOlder = ({ service: a }: Claim, { service: b }: Claim): boolean =>
  a.createdAt === b.createdAt ? a.uid < b.uid : a.createdAt < b.createdAt
