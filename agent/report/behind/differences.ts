import { addressOf } from '../../gateway/apisix/nodes.ts'
import type { EndpointFact, Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { Clocks } from '../../rules/members/behind.ts'
import type { Holder } from '../../rules/plan/holder.ts'
import type { Sources } from '../../round/gather/sources.ts'
import { same } from '../../base/read.ts'
import { missingFrom, type Followed } from '../../upkeep/expected.ts'
import type { Sync } from '../../upkeep/sync.ts'

/** A holder as it was last compared with Kubernetes. */
export interface Compared {
  holder: Holder
  followed: Followed | undefined
  /** The slices of the Service that it follows. */
  slices: readonly EndpointFact[]
  /** When its owner last added a node; -Infinity: not seen yet. */
  gainedAt: Millis
  clocks: Clocks
}

/**
 * A node that is missing for longer than this, in ms, is left out on purpose if the owner has added another node since. The holder then
 * lists a part of the Service. An owner that has stopped adds nothing, so its holder stays behind.
 */
const ON_PURPOSE_MS = 120_000

interface DifferencesOptions extends Pick<Sources, 'cluster' | 'inventory'> {
  readonly sync: Pick<Sync, 'members'> | undefined
}

/** The nodes in which a holder differs from the ready endpoints, each with the time of the change. */
type Differences = (
  before: Compared,
  now: Pick<Compared, 'holder' | 'followed' | 'slices'>,
  at: Millis
) => ReadonlyMap<NodeKey, Millis>

export function createDifferences({ cluster, inventory, sync }: DifferencesOptions): Differences {
  const { pods } = cluster

  /** Ready endpoints that it should list, each with the time from which it was ready. */
  const missing = (
    holder: Holder,
    followed: Followed | undefined,
    { clocks: { nodes }, gainedAt }: Compared,
    now: Millis
  ): readonly (readonly [NodeKey, Millis])[] => {
    const listed = new Set(holder.nodes.map(({ key }) => key))
    const members = sync?.members(holder.key)
    const late = new Set(
      [...nodes].flatMap(([node, since]) => (since < gainedAt && now - since > ON_PURPOSE_MS ? [] : [node]))
    )
    const found = members
      ? [...members].filter(node => !listed.has(node))
      : followed
        ? missingFrom(cluster, holder, followed, { now, late }).filter(node => !isElsewhere(node, holder))
        : []
    return found.map(node => [node, readyAt(node) ?? now])
  }

  /** Whether another holder lists the endpoint, but no node of this holder. The two then share the Service's pods (a canary, a subset). */
  const isElsewhere = (node: NodeKey, holder: Holder): boolean =>
    inventory
      .byHost(hostOf(node))
      .some(other => !other.nodes.some(({ host }) => holder.nodes.some(own => own.host === host)))

  const readyAt = (node: NodeKey): Millis | undefined =>
    pods.byIp(hostOf(node)).flatMap(({ uid }) => pods.becameReady().get(uid) ?? [])[0]

  /**
   * Listed nodes whose endpoint was ready and is not, although the pod stays. Only if an ingress controller owns the holder: others may
   * list what is not ready on purpose. Pods that end are drains.
   */
  const leaving = (
    one: Compared,
    holder: Holder,
    slicesNow: readonly EndpointFact[],
    now: Millis
  ): readonly (readonly [NodeKey, Millis])[] => {
    if (holder.owner === 'unknown') return []
    const were = readyIn(one.slices)
    const are = readyIn(slicesNow)
    const stays = (host: string) => pods.byIp(host).some(({ deletionAt }) => deletionAt === undefined)
    return holder.nodes.flatMap(({ key, host }) =>
      !are.has(host) && (were.has(host) || one.clocks.nodes.has(key)) && stays(host)
        ? [[key, now] as const]
        : []
    )
  }

  return (before, { holder, followed, slices }, now) => {
    const isSame = same(before.followed?.service, followed?.service)
    return new Map([
      ...missing(holder, followed, before, now),
      ...(followed && isSame ? leaving(before, holder, slices, now) : [])
    ])
  }
}

const readyIn = (slices: readonly EndpointFact[]): ReadonlySet<string> =>
  new Set(
    slices.flatMap(({ endpoints }) => endpoints.flatMap(({ address, ready }) => (ready ? [address] : [])))
  )

const hostOf = (node: NodeKey): string => addressOf(node).host
