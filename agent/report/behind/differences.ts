import { addressOf } from '../../gateway/apisix/holders.ts'
import type { EndpointFact, Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { Clocks } from '../../rules/members/behind.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import type { Sources } from '../../round/gather/sources.ts'
import { same } from '../../base/read.ts'
import { missingFrom, type Followed, type Sync } from '../../upkeep/sync.ts'
import type { HolderView, BehindView } from '../snapshot/snapshot.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import { latestDecision, momentsOf } from '../snapshot/drain-view.ts'
import type { Memory } from '../../round/gather/memory.ts'

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

/** How far a holder is behind Kubernetes now, and how long the gateways took to follow its last change. */
export type HolderClock = Pick<HolderView, 'missing' | 'notReady' | 'behind' | 'lags'>

/** The clock of a holder that is not behind, and has no lags. */
export const QUIET: HolderClock = { missing: [], notReady: [], behind: null, lags: [] }

/**
 * Keeps only the results of readings that began after the change: an earlier reading may just be old.
 *
 * @param readAt when the holders were read last
 * @param isSynced whether the agent fills the holder, so that no other owner is to blame
 */
export function holderClock(
  { holder, clocks }: Pick<Compared, 'holder' | 'clocks'>,
  readAt: Millis,
  isSynced: () => boolean
): HolderClock {
  const { waiting, lags } = clocks
  const owner = clocks.owes !== undefined && clocks.owes < readAt ? clocks.owes : null
  if (clocks.nodes.size + waiting.size + lags.length === 0 && owner === null) return QUIET
  const nodes = [...clocks.nodes].flatMap(([node, since]) => (since < readAt ? [{ node, since }] : []))
  const gateways = [...waiting].flatMap(([gateway, { since, why, evidence }]) =>
    why === '' ? [] : [{ gateway, since, why, evidence }]
  )
  if (owner === null && gateways.length === 0) return lags.length === 0 ? QUIET : { ...QUIET, lags }
  const isListed = ({ node }: { readonly node: NodeKey }) => holder.nodes.some(({ key }) => key === node)
  const since = Math.min(owner ?? Infinity, ...gateways.map(one => one.since))
  const cause = owner === null ? 'gateways' : isSynced() ? 'sync' : 'owner'
  return {
    missing: nodes.filter(one => !isListed(one)),
    notReady: nodes.filter(isListed),
    behind: { since, owner, cause, gateways },
    lags
  }
}

type GatewayBehind = BehindView['gateways'][number]

/**
 * The gateways that have not sealed an ending pod yet, by holder that lists or listed it. Such a gateway is behind from Kubernetes'
 * decision until it seals the pod; without the plugin, until it was seen without the pod. A last endpoint that is held as planned is
 * not behind.
 */
export function unsealedIn(
  drains: readonly Drain[],
  memory: (uid: PodUid) => Memory
): ReadonlyMap<HolderKey, readonly GatewayBehind[]> {
  const found = new Map<HolderKey, GatewayBehind[]>()
  for (const drain of drains) {
    if (drain.phase !== 'draining' || drain.verdict.kind !== 'waiting' || drain.verdict.lastEndpoint) continue
    const late = drain.verdict.gateways.filter(({ sealedAt, at }) => (sealedAt ?? at) === undefined)
    if (late.length === 0) continue
    const since = latestDecision(momentsOf(drain, memory(drain.uid)))
    const { namespace, name } = drain.pod
    for (const { key } of drain.verdict.holders) {
      const behind = late.map(({ name: gateway, why, grade }) => ({
        gateway,
        since,
        why: `${namespace}/${name} ends: ${why}`,
        evidence: grade === 'observed' ? ('observed' as const) : ('barrier' as const)
      }))
      found.set(key, [...(found.get(key) ?? []), ...behind])
    }
  }
  return found
}

/** A holder's clock together with the gateways that have not sealed a pod there. Each gateway once, with the oldest change. */
export function withUnsealed(
  clock: HolderClock,
  unsealed: readonly GatewayBehind[] | undefined
): HolderClock {
  if (!unsealed) return clock
  const { behind } = clock
  const oldest = new Map<string, GatewayBehind>()
  for (const one of [...(behind?.gateways ?? []), ...unsealed])
    if (one.since < (oldest.get(one.gateway)?.since ?? Infinity)) oldest.set(one.gateway, one)
  const gateways = [...oldest.values()]
  const since = Math.min(behind?.since ?? Infinity, ...gateways.map(one => one.since))
  return {
    ...clock,
    behind: { since, owner: behind?.owner ?? null, cause: behind?.cause ?? 'gateways', gateways }
  }
}
