import type { Millis, NodeKey, ServiceFact } from '../../rules/drain/facts.ts'
import type { Target } from '../../gateway/write/removal.ts'
import { nodeFor, type Wish } from '../../gateway/write/wish.ts'
import { serviceName, type Claim } from '../../rules/members/claim.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { allowedBy } from '../../rules/members/allowed.ts'
import { marksOf } from '../../rules/members/node-mark.ts'
import { settleClaims, type Settled } from '../../rules/members/settle.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { createClaimPlan, type ClaimPlanOptions } from './claim-plan.ts'

interface SyncOptions extends ClaimPlanOptions {
  readonly cluster: ClaimPlanOptions['cluster'] & Pick<Cluster, 'services'>
  /** Reads a Service and its slices again, before any removal. Whether it could. */
  readonly asking: { refresh(service: ServiceFact): Promise<boolean> }
  /** Asked right before every write: only one of several agents syncs, and none in a dry run. */
  readonly mayWrite: () => boolean
  /** `sync.allow`: the upstreams that each namespace may fill. */
  readonly allow: readonly string[]
  /** A Service's claim has a problem (reported once, and again if its text changes), or the problem is over. */
  readonly told: (service: ServiceFact, why: string | undefined) => void
}

/** Keeps the members of claimed upstreams equal to the EndpointSlices. It decides; the writer asks and writes. */
export interface Sync {
  /** The objects that differ from their wished state. */
  targets(now: Millis): readonly Target[]
  /** Reads the Service and its slices again before a removal, because the data of a silent watch may be old. */
  prepare(target: Target): Promise<void>
  /** The wished state of the object, which was read after `prepare`. It removes nodes only if `prepare` has refreshed the Service. */
  wishes(target: Target, found: readonly Holder[]): readonly Wish[]
  /** The nodes that a claimed holder should list; `undefined` if no Service claims it. */
  members(holder: HolderKey): ReadonlySet<NodeKey> | undefined
  /** For the metrics: the number of synced holders, and of Services whose claim is not met. */
  counts(): { readonly holders: number; readonly problems: number }
}

export function createSync(options: SyncOptions): Sync {
  const { cluster, inventory } = options
  const allows = allowedBy(options.allow)
  const plan = createClaimPlan(options)
  /** Claimed holders whose Service was refreshed right before their object is read. */
  const refreshed = new Set<HolderKey>()
  let asked: readonly ServiceFact[] | undefined
  let settled: Settled = { claims: new Map(), problems: new Map() }
  /** Whether `settled` rests on the marks of the nodes. If not, it is a guess that must not bind later. */
  let isFirm = false
  let reported: ReadonlyMap<string, string> = new Map()

  /** The Service that had the claim a moment ago; after a start of the agent, those that the marks name. */
  const followedBy = (key: HolderKey): ReadonlySet<string> => {
    const before = isFirm ? settled.claims.get(key) : undefined
    return before ? new Set([serviceName(before.service)]) : marksOf(inventory.holders().get(key))
  }
  /** Settles the claims again if a Service has changed since, or if the marks have been read. */
  const refresh = (): void => {
    const asking = cluster.services.asking()
    const areRead = inventory.readAt() !== undefined
    if (asked === asking && (isFirm || !areRead)) return
    asked = asking
    settled = settleClaims(asked, { allows, followedBy })
    isFirm = areRead
    plan.keep(settled.claims)
  }
  /** Reports each problem once, again if its text changes, and once more when it is over. */
  const report = (found: ReadonlyMap<string, string>): void => {
    for (const service of cluster.services.asking()) {
      const name = serviceName(service)
      if (found.get(name) !== reported.get(name)) options.told(service, found.get(name))
    }
    reported = found
  }

  /** Why this claim cannot be met, in words. */
  const refusal = (claim: Claim, holder: Holder | undefined): string | undefined => {
    if (!holder) {
      return inventory.readAt() === undefined ? undefined : `${claim.holder} does not exist: make it`
    }
    const slices = cluster.slices.of(claim.service.namespace, claim.service.name)
    if (slices.length > 0 && slices.every(({ family }) => family === 'FQDN'))
      return `${claim.holder}: the EndpointSlices of the Service have host names, and only addresses are listed`
    if (holder.discovery) return `${claim.holder} finds its nodes by discovery: there is nothing to sync`
    if (holder.owner !== 'unknown') return `${claim.holder} belongs to ${holder.owner}: it would be a fight`
    return undefined
  }
  const isKnown = () => cluster.parts().every(part => part.name === 'gateways' || part.synced)
  const claimOn = ({ resource, id }: Target): Claim | undefined =>
    resource === 'upstreams' ? settled.claims.get(`upstreams/${id}`) : undefined

  const wishesNow = (target: Target, found: readonly Holder[]): readonly Wish[] => {
    const claim = claimOn(target)
    if (!claim || !isKnown() || !options.mayWrite()) return []
    const holder = found.find(({ key }) => key === claim.holder)
    if (!holder || refusal(claim, holder) !== undefined) return []
    const { add, remove } = plan.edits(claim, holder)
    return [{ holder: holder.key, put: add.map(node => nodeFor(node, holder)), remove }]
  }

  return {
    targets(at) {
      if (!isKnown()) return []
      refresh()
      const problems = new Map(settled.problems)
      const targets: Target[] = []
      for (const claim of settled.claims.values()) {
        const why = refusal(claim, inventory.holders().get(claim.holder))
        if (why !== undefined) problems.set(serviceName(claim.service), why)
        else if (plan.needsWrite(claim, at)) targets.push({ resource: 'upstreams', id: claim.id })
      }
      report(problems)
      return options.mayWrite() ? targets : []
    },
    async prepare(target) {
      const claim = claimOn(target)
      if (!claim) return
      refreshed.delete(claim.holder)
      const holder = inventory.holders().get(claim.holder)
      const wished = wishesNow(target, holder ? [holder] : [])
      if (!wished.some(({ remove }) => remove.length > 0)) return
      if (!(await options.asking.refresh(claim.service))) return
      refresh()
      refreshed.add(claim.holder)
    },
    wishes: (target, found) =>
      wishesNow(target, found).map(wish => (refreshed.has(wish.holder) ? wish : { ...wish, remove: [] })),
    members: key => {
      const claim = settled.claims.get(key)
      return claim && plan.members(claim)
    },
    counts: () => ({ holders: settled.claims.size, problems: reported.size })
  }
}
