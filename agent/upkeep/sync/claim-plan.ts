import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Drains } from '../../rules/drain/drain.ts'
import {
  nodeKey,
  type EndpointFact,
  type Millis,
  type NodeKey,
  type PodFact
} from '../../rules/drain/facts.ts'
import { serviceName, type Claim } from '../../rules/members/claim.ts'
import { planSync } from '../../rules/members/member-edits.ts'
import { membersOf, type PodsKnown } from '../../rules/members/members.ts'
import { markOf } from '../../rules/members/node-mark.ts'
import type { Holder, HolderKey, HolderNode } from '../../rules/plan/holder.ts'
import { isEnding } from '../../rules/plan/match.ts'

export interface ClaimPlanOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'slices' | 'parts'>
  readonly inventory: Pick<Inventory, 'holders' | 'readAt'>
  readonly drains: () => Drains
  /** Whether only pods have addresses in this range. */
  readonly isPodRange: (host: string) => boolean
}

/** Compares claimed holders with the EndpointSlices of their Services. */
interface ClaimPlan {
  /** The nodes that the holder should list. */
  members(claim: Claim): ReadonlySet<NodeKey>
  /** The changes that make the holder equal to the slices. */
  edits(claim: Claim, holder: Holder): ReturnType<typeof planSync>
  /** Whether a check is due, and the holder differs. */
  needsWrite(claim: Claim, now: Millis): boolean
  /** Forgets all other claims. */
  keep(claims: ReadonlyMap<HolderKey, Claim>): void
}

/** What a check was about. */
interface Look {
  readonly holder: Holder | undefined
  readonly slices: readonly EndpointFact[]
  readonly at: Millis
}

/** A claim is checked when its holder or a slice changes. For other changes, it is checked at this interval, in ms. */
const EVERY_MS = 1000

export function createClaimPlan(options: ClaimPlanOptions): ClaimPlan {
  const { cluster, inventory } = options
  const { pods, slices } = cluster
  /** By holder: former members that are still listed. They identify leftover nodes of pods that are gone. */
  const former = new Map<HolderKey, Set<NodeKey>>()
  /** By holder: what its last check was about. */
  const looks = new Map<HolderKey, Look>()
  const drainingNow = createDrainingHosts(options.drains)

  const slicesOf = ({ service }: Claim) => slices.of(service.namespace, service.name)

  const known: PodsKnown = {
    pod: uid => pods.get(uid),
    isGone: uid => pods.get(uid) === undefined && pods.gone(uid) !== undefined,
    isDraining: uid => isEnding(options.drains().get(uid))
  }
  const members = (claim: Claim): ReadonlySet<NodeKey> => membersOf(claim, slicesOf(claim), known)

  /** The members, and the former ones. Updates these. */
  const membersSoFar = ({ holder: key }: Claim, members: ReadonlySet<NodeKey>, holder: Holder) => {
    const listed = new Set(holder.nodes.map(node => node.key))
    const were = [...(former.get(key) ?? [])].filter(node => listed.has(node))
    const all = new Set([...were, ...members])
    former.set(key, all)
    return all
  }

  const edits = (claim: Claim, holder: Holder) => {
    const wanted = members(claim)
    const were = membersSoFar(claim, wanted, holder)
    const draining = drainingNow()
    const endpoints = slicesOf(claim).flatMap(slice => slice.endpoints)
    // Endpoints that end are among them: a new pod is like the one that it replaces.
    const nodes = new Set(
      slicesOf(claim).flatMap(({ ports, endpoints }) =>
        ports
          .filter(({ name }) => name === claim.port)
          .flatMap(({ port }) => endpoints.map(({ address }) => nodeKey(address, port)))
      )
    )
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
      members: wanted,
      holder,
      isPods: node =>
        were.has(node.key) || markOf(node) !== undefined || isPods(node) || options.isPodRange(node.host),
      isOwn: node => were.has(node.key) || nodes.has(node.key) || markOf(node) === serviceName(claim.service),
      isGone: ({ host }) =>
        pods.byIp(host).length === 0 && !endpoints.some(({ address }) => address === host),
      isDraining: node => draining.has(node.host),
      current: cluster.parts().every(part => part.name === 'gateways' || part.state === 'live')
    })
  }

  const isDue = (claim: Claim, at: Millis): boolean => {
    const holder = inventory.holders().get(claim.holder)
    const current = slicesOf(claim)
    const looked = looks.get(claim.holder)
    if (!looked) return true
    const same =
      looked.holder === holder &&
      looked.slices.length === current.length &&
      looked.slices.every((slice, i) => slice === current[i])
    return !same || at >= looked.at + EVERY_MS
  }

  return {
    members,
    edits,
    needsWrite(claim, at) {
      if (!isDue(claim, at)) return false
      const holder = inventory.holders().get(claim.holder)
      looks.set(claim.holder, { holder, slices: slicesOf(claim), at })
      if (!holder) return false
      const { add, remove } = edits(claim, holder)
      return add.length + remove.length > 0
    },
    keep(claims) {
      for (const key of former.keys()) if (!claims.has(key)) former.delete(key)
      for (const key of looks.keys()) if (!claims.has(key)) looks.delete(key)
    }
  }
}

/**
 * Addresses of pods that are being drained, computed once for each set of drains: a round makes a new set. If pods share their host's
 * address, this covers all of them: it is safe to leave a node.
 */
function createDrainingHosts(drains: () => Drains): () => ReadonlySet<string> {
  let of: Drains | undefined
  let hosts: ReadonlySet<string> = new Set()
  return () => {
    if (of === drains()) return hosts
    of = drains()
    hosts = new Set(
      [...of.values()].flatMap(drain => (isEnding(drain) && drain.phase !== 'gone' ? drain.pod.ips : []))
    )
    return hosts
  }
}
