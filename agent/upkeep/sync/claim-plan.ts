import { same } from '../../base/same.ts'
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
import { membersOf } from '../../rules/members/members.ts'
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

/** A claim is checked when its holder or a slice changes. For other changes, it is checked at this interval, in ms. */
const EVERY_MS = 1000

/** Compares claimed holders with the EndpointSlices of their Services. */
export function createClaimPlan({ cluster, inventory, drains, isPodRange }: ClaimPlanOptions) {
  const { pods, slices } = cluster
  /** By holder: former members that are still listed. They identify leftover nodes of pods that are gone. */
  const former = new Map<HolderKey, ReadonlySet<NodeKey>>()
  /** By holder: what its last check was about. */
  const looks = new Map<HolderKey, { holder?: Holder; slices: readonly EndpointFact[]; at: Millis }>()

  const slicesOf = ({ service }: Claim) => slices.of(service.namespace, service.name)
  /** The nodes that the holder should list. */
  const members = (claim: Claim): ReadonlySet<NodeKey> =>
    membersOf(claim, slicesOf(claim), {
      pod: uid => pods.get(uid),
      isGone: uid => pods.get(uid) === undefined && pods.gone(uid) !== undefined,
      isDraining: uid => isEnding(drains().get(uid))
    })
  /** If pods share their host's address, this covers all of them: it is safe to leave a node. */
  const isDraining = ({ host }: HolderNode): boolean =>
    drains()
      .values()
      .some(drain => isEnding(drain) && drain.phase !== 'gone' && drain.pod.ips.includes(host))

  /** The changes that make the holder equal to the slices. */
  const edits = (claim: Claim, holder: Holder) => {
    const wanted = members(claim)
    const listed = new Set(holder.nodes.map(node => node.key))
    const were = new Set([...(former.get(claim.holder) ?? [])].filter(node => listed.has(node))).union(wanted)
    former.set(claim.holder, were)
    const endpoints = slicesOf(claim).flatMap(({ ports, endpoints }) =>
      endpoints.map(one => ({ ...one, port: ports.find(({ name }) => name === claim.port)?.port }))
    )
    // Endpoints that end are among them: a new pod is like the one that it replaces.
    const nodes = new Set(
      endpoints.flatMap(({ address, port }) => (port === undefined ? [] : nodeKey(address, port)))
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
        were.has(node.key) || markOf(node) !== undefined || isPods(node) || isPodRange(node.host),
      isOwn: node => were.has(node.key) || nodes.has(node.key) || markOf(node) === serviceName(claim.service),
      isGone: ({ host }) =>
        pods.byIp(host).length === 0 && !endpoints.some(({ address }) => address === host),
      isDraining,
      current: cluster.parts().every(part => part.name === 'gateways' || part.state === 'live')
    })
  }

  return {
    members,
    edits,
    /** Whether a check is due, and the holder differs. */
    needsWrite(claim: Claim, at: Millis): boolean {
      const holder = inventory.holders().get(claim.holder)
      const now = { ...(holder && { holder }), slices: slicesOf(claim) }
      const before = looks.get(claim.holder)
      const isSame = before?.holder === holder && same(before?.slices, now.slices)
      if (before && isSame && at < before.at + EVERY_MS) return false
      looks.set(claim.holder, { ...now, at })
      if (!holder) return false
      const { add, remove } = edits(claim, holder)
      return add.length + remove.length > 0
    },
    /** Forgets all other claims. */
    keep(claims: ReadonlyMap<HolderKey, Claim>): void {
      for (const key of former.keys()) if (!claims.has(key)) former.delete(key)
      for (const key of looks.keys()) if (!claims.has(key)) looks.delete(key)
    }
  }
}
