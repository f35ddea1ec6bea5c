import type { Drains } from '../drain/drain.ts'
import type { Millis, NodeKey, PodFact, ServiceFact } from '../drain/facts.ts'
import type { Inventory } from '../inventory/inventory.ts'
import type { Target } from '../write/removal.ts'
import { nodeFor, type Wishes } from '../write/wish.ts'
import { serviceName, type Claim } from '../members/claim.ts'
import type { Holder, HolderKey, HolderNode } from '../plan/holder.ts'
import { isEnding } from '../plan/match.ts'
import { membersOf, type PodsKnown } from '../members/members.ts'
import { allowedBy } from '../members/allowed.ts'
import { markOf, marksOf } from '../members/node-mark.ts'
import { newUpstream, planSync } from '../members/member-edits.ts'
import type { Cluster } from '../facts/cluster.ts'
import type { Asking } from './asking.ts'
import { createClaims } from './claims.ts'
import { createCourses } from './courses.ts'

interface SyncOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'slices' | 'services' | 'parts'>
  readonly inventory: Pick<Inventory, 'holders' | 'readAt'>
  readonly drains: () => Drains
  /** Asked before any removal. */
  readonly asking: Pick<Asking, 'refresh'>
  /** Asked right before every write: only one of several agents syncs, and none in a dry run. */
  readonly mayWrite: () => boolean
  /** `sync.allow`: the upstreams that each namespace may fill. */
  readonly allow: readonly string[]
  /** Whether only pods have addresses in this range. */
  readonly isPodRange: (host: string) => boolean
  readonly now: () => Millis
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
  wishes(target: Target, found: readonly Holder[] | undefined): Wishes
  /** The nodes that a claimed holder should list; `undefined` if no Service claims it. */
  members(holder: HolderKey): ReadonlySet<NodeKey> | undefined
  /** The Services whose claim on this holder changes nothing, because another one keeps it. The metric and the Events count them too. */
  losers(holder: HolderKey): readonly string[]
  /** The holders in which the agent lists this pod, or will list it; and why it is not in others that Services ask for. */
  following(pod: PodFact): { readonly holders: readonly HolderKey[]; readonly problems: readonly string[] }
  /** For the metrics: the number of synced holders, and of Services whose claim is not met. */
  counts(): { readonly holders: number; readonly problems: number }
}

/** A claim is checked when its holder or a slice changes. For other changes, it is checked at this interval, in ms. */
const EVERY_MS = 1000
const NOTHING: Wishes = { edits: [] }

export function createSync(options: SyncOptions): Sync {
  const { cluster, inventory, now } = options
  const { pods, slices, services } = cluster
  const claims = createClaims({
    asking: () => services.asking(),
    allows: allowedBy(options.allow),
    marked: () =>
      inventory.readAt() === undefined ? undefined : key => marksOf(inventory.holders().get(key)),
    told: options.told
  })
  const courses = createCourses(now)
  /** Claimed holders whose Service was refreshed right before their object is read. */
  const refreshed = new Set<HolderKey>()
  let draining: { readonly of: Drains | undefined; readonly hosts: ReadonlySet<string> } = {
    of: undefined,
    hosts: new Set()
  }

  /** Computed once for each set of drains: a round makes a new set. */
  const drainingNow = (): ReadonlySet<string> => {
    const drains = options.drains()
    if (draining.of !== drains) draining = { of: drains, hosts: drainingHosts(drains) }
    return draining.hosts
  }

  const slicesOf = ({ service }: Claim) => slices.of(service.namespace, service.name)

  const known: PodsKnown = {
    pod: uid => pods.get(uid),
    isGone: uid => pods.get(uid) === undefined && pods.gone(uid) !== undefined,
    isDraining: uid => isEnding(options.drains().get(uid))
  }
  const membersNow = (claim: Claim): ReadonlySet<NodeKey> => membersOf(claim, slicesOf(claim), known)
  const isMember = (claim: Claim, { uid }: PodFact): boolean => {
    const own = slicesOf(claim).map(slice => ({
      ...slice,
      endpoints: slice.endpoints.filter(({ podUid }) => podUid === uid)
    }))
    return membersOf(claim, own, known).size > 0
  }

  const planned = (claim: Claim, holder: Holder) => {
    const members = membersNow(claim)
    const { since, were } = courses.update(claim, members, holder)
    const drainingHostsNow = drainingNow()
    const endpoints = slicesOf(claim).flatMap(slice => slice.endpoints)
    const isFree = ({ host }: HolderNode) =>
      pods.byIp(host).length === 0 && !endpoints.some(({ address }) => address === host)
    // Pods on their host's address are distinguished by port. Another listener there (a NodePort, for example) is no pod.
    const isAt = (pod: PodFact, { port }: HolderNode) =>
      !pod.hostNetwork || port === undefined || [...pod.containerPorts, ...slices.portsOf(pod)].includes(port)
    const isPods = (node: HolderNode) =>
      pods.byIp(node.host).some(pod => isAt(pod, node)) ||
      endpoints.some(
        ({ address, podUid }) => address === node.host && !(podUid && pods.get(podUid)?.hostNetwork)
      )
    return planSync({
      claim,
      members,
      holder,
      isPods: node =>
        were.has(node.key) || markOf(node) !== undefined || isPods(node) || options.isPodRange(node.host),
      isGone: isFree,
      isDraining: node => drainingHostsNow.has(node.host),
      since,
      current: cluster.parts().every(part => part.name === 'gateways' || part.state === 'live'),
      now: now()
    })
  }

  /** Why this claim cannot be met, in words. */
  const refusal = (claim: Claim, holder: Holder | undefined): string | undefined => {
    if (!holder) {
      return claim.create || inventory.readAt() === undefined
        ? undefined
        : `${claim.holder} does not exist; make it, or ask for it with apisix-drain.io/create: "true"`
    }
    if (holder.discovery) return `${claim.holder} finds its nodes by discovery: there is nothing to sync`
    if (holder.owner !== 'unknown') return `${claim.holder} belongs to ${holder.owner}: it would be a fight`
    return undefined
  }

  const isDue = (claim: Claim, at: Millis): boolean => {
    const holder = inventory.holders().get(claim.holder)
    const current = slicesOf(claim)
    const { looked } = courses.of(claim.holder)
    const same =
      looked.holder === holder &&
      looked.gates === pods.gateChanges &&
      looked.slices.length === current.length &&
      looked.slices.every((slice, i) => slice === current[i])
    return !same || at >= looked.at + EVERY_MS
  }

  const differs = (claim: Claim, holder: Holder | undefined): boolean => {
    if (!holder)
      return inventory.readAt() !== undefined && newUpstream(claim, membersNow(claim)) !== undefined
    const { add, weigh, remove } = planned(claim, holder)
    return add.length + weigh.length + remove.length > 0
  }

  /** Reads the claims again if a Service changed. */
  const refresh = (): void => {
    if (claims.refresh()) courses.keep(claims.all())
  }

  const claimOn = ({ resource, id }: Target): Claim | undefined =>
    resource === 'upstreams' ? claims.all().get(`upstreams/${id}`) : undefined

  const wishesNow = (target: Target, found: readonly Holder[] | undefined): Wishes => {
    const claim = claimOn(target)
    if (!claim || !isKnown() || !options.mayWrite()) return NOTHING
    if (!found) return { edits: [], create: bodyOf(newUpstream(claim, membersNow(claim))) }
    const holder = found.find(({ key }) => key === claim.holder)
    if (!holder || refusal(claim, holder) !== undefined) return NOTHING
    const { add, weigh, remove } = planned(claim, holder)
    return {
      edits: [{ holder: holder.key, put: [...add, ...weigh].map(node => nodeFor(node, holder)), remove }]
    }
  }

  const isKnown = () => cluster.parts().every(part => part.name === 'gateways' || part.synced)

  return {
    targets(at) {
      if (!isKnown()) return []
      refresh()
      const problems = new Map(claims.problems())
      const targets: Target[] = []
      for (const claim of claims.all().values()) {
        const holder = inventory.holders().get(claim.holder)
        const why = refusal(claim, holder)
        if (why !== undefined) problems.set(serviceName(claim.service), why)
        if (why !== undefined || !isDue(claim, at)) continue
        courses.of(claim.holder).looked = { holder, slices: slicesOf(claim), gates: pods.gateChanges, at }
        if (differs(claim, holder)) targets.push({ resource: 'upstreams', id: claim.id })
      }
      claims.report(problems)
      return options.mayWrite() ? targets : []
    },
    async prepare(target) {
      const claim = claimOn(target)
      if (!claim) return
      refreshed.delete(claim.holder)
      const holder = inventory.holders().get(claim.holder)
      const { edits } = wishesNow(target, holder && [holder])
      if (!edits.some(({ remove }) => remove.length > 0)) return
      if (!(await options.asking.refresh(claim.service))) return
      refresh()
      refreshed.add(claim.holder)
    },
    wishes(target, found) {
      const wished = wishesNow(target, found)
      const mayRemove = (holder: HolderKey) => refreshed.has(holder)
      return {
        ...wished,
        edits: wished.edits.map(edit => (mayRemove(edit.holder) ? edit : { ...edit, remove: [] }))
      }
    },
    members: key => {
      const claim = claims.all().get(key)
      return claim && membersNow(claim)
    },
    losers: holder => claims.losers(holder),
    following(pod) {
      refresh()
      const services = new Set(slices.servicesOf(pod).map(serviceName))
      const own = [...claims.all().values()].filter(({ service }) => services.has(serviceName(service)))
      if (own.length > 0 && !options.mayWrite()) return { holders: [], problems: ['sync may not write here'] }
      const problems = [...claims.reported()]
        .filter(([service]) => services.has(service))
        .map(([, why]) => why)
      const kept = own.filter(
        claim => refusal(claim, inventory.holders().get(claim.holder)) === undefined && isMember(claim, pod)
      )
      return { holders: kept.map(({ holder }) => holder), problems }
    },
    counts: () => ({ holders: claims.all().size, problems: claims.reported().size })
  }
}

/** Addresses of pods that are being drained. If pods share their host's address, this covers all of them: it is safe to leave a node. */
const drainingHosts = (drains: Drains): ReadonlySet<string> =>
  new Set(
    [...drains.values()].flatMap(drain => (isEnding(drain) && drain.phase !== 'gone' ? drain.pod.ips : []))
  )

/** The smallest upstream that APISIX accepts, built through an ordinary holder. */
function bodyOf(wanted: ReturnType<typeof newUpstream>): Readonly<Record<string, unknown>> | undefined {
  if (!wanted) return undefined
  const empty: Holder = {
    key: '',
    resource: 'upstreams',
    id: '',
    path: [],
    form: 'array',
    nodes: [],
    discovery: undefined,
    owner: 'unknown',
    labels: {},
    name: undefined,
    revision: 0
  }
  const nodes = wanted.nodes.map(node => nodeFor(node, empty).raw)
  return { name: wanted.name, type: 'roundrobin', nodes }
}
