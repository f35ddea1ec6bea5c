import { same } from '../base/read.ts'
import type { Inventory } from '../gateway/inventory/inventory.ts'
import type { Target } from '../gateway/write/removal.ts'
import { nodeFor, type Wish } from '../gateway/write/edit.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import type { Drains } from '../rules/drain/drain.ts'
import {
  nodeKey,
  type EndpointFact,
  type Millis,
  type NodeKey,
  type ServiceFact,
  type PodFact
} from '../rules/drain/facts.ts'
import {
  allowedBy,
  serviceName,
  planSync,
  membersOf,
  settleClaims,
  type Claim,
  type Settled
} from '../rules/members/members.ts'
import { type Holder, type HolderKey, isEnding } from '../rules/plan/holder.ts'
import type { ServiceName } from '../kubernetes/facts/slice-store.ts'

interface SyncOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'slices' | 'services' | 'parts'>
  readonly inventory: Pick<Inventory, 'holders' | 'readAt'>
  readonly drains: () => Drains
  /** Whether only pods have addresses in this range. */
  readonly isPodRange: (host: string) => boolean
  /** Reads a Service and its slices again, before any write. Whether it could. */
  readonly asking: { refresh(service: ServiceFact): Promise<boolean> }
  /** Asked right before every write: only one of several agents syncs, and none in a dry run. */
  readonly mayWrite: () => boolean
  /** `sync.allow`: the upstreams that each namespace may fill. */
  readonly allow: readonly string[]
  /** A Service's claim has a problem (reported once, and again if its text changes), or the problem is over. */
  readonly report: (service: ServiceFact, why: string | undefined) => void
}

/** A claim is checked when its holder or a slice changes. For other changes, it is checked at this interval, in ms. */
const EVERY_MS = 1000

export type Sync = ReturnType<typeof createSync>

/** Keeps the members of claimed upstreams equal to the EndpointSlices. It decides; the writer asks and writes. */
export function createSync(options: SyncOptions) {
  const { cluster, inventory, drains, isPodRange } = options
  const { pods, slices, services } = cluster
  const allows = allowedBy(options.allow)
  /** By holder: former members that are still listed. They identify leftover nodes of pods that are gone. */
  const former = new Map<HolderKey, ReadonlySet<NodeKey>>()
  /** By holder: what its last check was about. */
  const looks = new Map<
    HolderKey,
    { readonly about: readonly [Holder, readonly EndpointFact[]]; readonly at: Millis }
  >()
  /** Claimed holders whose Service was refreshed right before their object is read. */
  const refreshed = new Set<HolderKey>()
  let asked: readonly ServiceFact[] | undefined
  let settled: Settled = { claims: new Map(), problems: new Map() }
  let reported: ReadonlyMap<string, string> = new Map()

  const slicesOf = ({ service }: Claim) => slices.of(service.namespace, service.name)
  const membersNow = (claim: Claim): ReadonlySet<NodeKey> =>
    membersOf(claim, slicesOf(claim), {
      pod: uid => pods.get(uid),
      isGone: uid => pods.get(uid) === undefined && pods.gone(uid) !== undefined,
      isDraining: uid => isEnding(drains().get(uid))
    })

  /** The changes that make the holder equal to the slices. */
  const edits = (claim: Claim, holder: Holder) => {
    const members = membersNow(claim)
    const listed = new Set(holder.nodes.map(node => node.key))
    const were = members.union(
      new Set([...(former.get(claim.holder) ?? [])].filter(node => listed.has(node)))
    )
    former.set(claim.holder, were)
    const endpoints = slicesOf(claim).flatMap(({ ports, endpoints }) =>
      endpoints.map(one => ({ ...one, port: ports.find(({ name }) => name === claim.port)?.port }))
    )
    // Endpoints that end are among them: a new pod is like the one that it replaces.
    const nodes = new Set(endpoints.map(({ address, port }) => nodeKey(address, port)))
    return planSync({
      members,
      holder,
      isOwn: ({ key }) => were.has(key) || nodes.has(key),
      // A pod on its host's address does not show whose another listener there is (a NodePort, for example).
      isPods: ({ host }) => isPodRange(host) || pods.byIp(host).some(({ hostNetwork }) => !hostNetwork),
      isGone: ({ host }) =>
        pods.byIp(host).length === 0 && !endpoints.some(({ address }) => address === host),
      // If pods share their host's address, this covers all of them: it is safe to leave a node.
      isDraining: ({ host }) =>
        drains()
          .values()
          .some(drain => isEnding(drain) && drain.phase !== 'gone' && drain.pod.ips.includes(host))
    })
  }
  /** Whether a check is due, and the holder differs. */
  const needsWrite = (claim: Claim, holder: Holder, at: Millis): boolean => {
    const about = [holder, slicesOf(claim)] as const
    const before = looks.get(claim.holder)
    if (before && same(before.about, about) && at < before.at + EVERY_MS) return false
    looks.set(claim.holder, { about, at })
    const { add, remove } = edits(claim, holder)
    return add.length + remove.length > 0
  }

  /** Settles the claims again if a Service has changed since. */
  const settle = (): void => {
    const asking = services.asking()
    if (asked === asking) return
    asked = asking
    settled = settleClaims(asking, allows)
    for (const known of [former, looks])
      for (const key of known.keys()) if (!settled.claims.has(key)) known.delete(key)
  }
  /** Reports each problem once, again if its text changes, and once more when it is over. */
  const report = (found: ReadonlyMap<string, string>): void => {
    for (const service of services.asking()) {
      const name = serviceName(service)
      if (found.get(name) !== reported.get(name)) options.report(service, found.get(name))
    }
    reported = found
  }
  /** Why this claim cannot be met, in words. */
  const refusal = (claim: Claim, { discovery, owner }: Holder): string | undefined => {
    const facts = slicesOf(claim)
    if (facts.length > 0 && facts.every(({ family }) => family === 'FQDN'))
      return `${claim.holder}: the EndpointSlices of the Service have host names, and only addresses are listed`
    if (discovery) return `${claim.holder} finds its nodes by discovery: there is nothing to sync`
    if (owner !== 'unknown') return `${claim.holder} belongs to ${owner}: it would be a fight`
    return undefined
  }
  const isKnown = () => cluster.parts().every(part => part.name === 'gateways' || part.synced)
  const claimOn = ({ resource, id }: Target): Claim | undefined =>
    options.mayWrite() && isKnown() ? settled.claims.get(`${resource}/${id}`) : undefined

  return {
    /** The objects that differ from their wished state. */
    targets(at: Millis): readonly Target[] {
      if (!isKnown()) return []
      settle()
      const problems = new Map(settled.problems)
      const targets: Target[] = []
      for (const claim of settled.claims.values()) {
        const holder = inventory.holders().get(claim.holder)
        if (!holder && inventory.readAt() === undefined) continue
        const why = holder ? refusal(claim, holder) : `${claim.holder} does not exist: make it`
        if (why !== undefined) problems.set(serviceName(claim.service), why)
        else if (holder && needsWrite(claim, holder, at))
          targets.push({ resource: 'upstreams', id: claim.id })
      }
      report(problems)
      return options.mayWrite() ? targets : []
    },
    /** Reads the Service and its slices again, because the data of a silent watch may be old. */
    async prepare(target: Target) {
      const claim = claimOn(target)
      if (!claim) return
      refreshed.delete(claim.holder)
      if (!(await options.asking.refresh(claim.service))) return
      settle()
      refreshed.add(claim.holder)
    },
    /** The wished state of the object, which was read after `prepare`. None if `prepare` could not read the Service. */
    wishes(target: Target, found: readonly Holder[]): readonly Wish[] {
      const claim = claimOn(target)
      const holder = found.find(({ key }) => key === claim?.holder)
      if (!claim || !holder || !refreshed.has(claim.holder) || refusal(claim, holder) !== undefined) return []
      const { add, remove } = edits(claim, holder)
      return [{ holder: holder.key, put: add.map(node => nodeFor(node, holder)), remove }]
    },
    /** The nodes that a claimed holder should list; `undefined` if no Service claims it. */
    members: (key: HolderKey): ReadonlySet<NodeKey> | undefined => {
      const claim = settled.claims.get(key)
      return claim && membersNow(claim)
    }
  }
}

/** A pod that started within this time, in ms, may be about to be listed by the owner of a holder. */
const RECENT_MS = 120_000

type Known = Pick<Cluster, 'pods' | 'slices'>

/** The Service whose endpoints a holder lists, and the one port of its nodes. */
export interface Followed {
  readonly service: ServiceName
  readonly port: number | undefined
}

/**
 * The Service that a holder is known to follow: each of its nodes that is a pod belongs to it. A pod that ends may have left its
 * slices, and then proves nothing. `unknown`: no node is a pod of a Service. `several`: it follows no single Service.
 */
export function followedService({ pods, slices }: Known, holder: Holder): Followed | 'unknown' | 'several' {
  const listed = holder.nodes.flatMap(node => pods.byIp(node.host))
  const telling = listed.filter(pod => pod.deletionAt === undefined || slices.servicesOf(pod).length > 0)
  const [first] = telling
  if (!first) return 'unknown'
  const ports = new Set(holder.nodes.map(node => node.port))
  const [service, ...others] = slices.servicesOf(first)
  if (!service || others.length > 0 || ports.size !== 1 || listed.some(({ hostNetwork }) => hostNetwork))
    return 'several'
  const belongs = (pod: PodFact) =>
    pod.namespace === service.namespace && slices.servicesOf(pod).some(other => other.name === service.name)
  return telling.every(belongs) ? { service, port: holder.nodes[0]?.port } : 'several'
}

interface Expecting {
  readonly now: Millis
  /** Nodes that are known to be missing. They are expected at any age. */
  readonly late?: ReadonlySet<NodeKey>
}

/**
 * Nodes that a holder should list according to Kubernetes, but does not. They are only displayed, never written: several holders may
 * share a Service, each with some of its pods (docs/decisions/0024).
 *
 * Nothing is expected unless every ready endpoint that the holder does not list is younger than RECENT_MS. A holder that lists a part
 * of a Service on purpose (a subset, a canary) lacks older ones too.
 */
export function missingFrom(
  { pods, slices }: Known,
  holder: Holder,
  { service, port }: Followed,
  { now, late = new Set() }: Expecting
): readonly NodeKey[] {
  const has = new Set(holder.nodes.map(node => node.host))
  const missing = slices
    .serving(service.namespace, service.name)
    .filter(endpoint => endpoint.ready && !endpoint.terminating && !has.has(endpoint.address))
    // A slice can be many seconds later than the deletion. A pod that ends is not expected, and proves nothing about the others.
    .filter(({ podUid }) => podUid === undefined || pods.get(podUid)?.deletionAt === undefined)
    .map(({ address, podUid }) => ({ node: nodeKey(address, port), podUid }))
  const isRecent = ({ podUid }: (typeof missing)[number]) => {
    const pod = podUid === undefined ? undefined : pods.get(podUid)
    return pod?.startedAt !== undefined && pod.deletionAt === undefined && now - pod.startedAt < RECENT_MS
  }
  return missing.every(one => late.has(one.node) || isRecent(one)) ? missing.map(({ node }) => node) : []
}
