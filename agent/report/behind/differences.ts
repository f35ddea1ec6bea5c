import { addressOf } from '../../gateway/apisix/holders.ts'
import {
  type EndpointFact,
  type GatewayFact,
  type Millis,
  type NodeKey,
  type PodUid,
  latest
} from '../../rules/drain/facts.ts'
import { observable } from '../../gateway/apisix/control-api.ts'
import { slowestOf, type Clocks, type GatewayHas } from '../../rules/members/behind.ts'
import type { Holder, HolderKey, Resource } from '../../rules/plan/holder.ts'
import type { Sources } from '../../round/gather/sources.ts'
import { missingFrom, type Followed, type Sync } from '../../upkeep/sync.ts'
import type { HolderView, BehindView } from '../snapshot/snapshot.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import { latestDecision, momentsOf } from '../snapshot/drain-view.ts'
import type { Status } from '../../round/gather/drain-status.ts'

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

/**
 * The nodes in which a holder differs from its Service, each with the time of the change: ready endpoints that it does not list, and
 * listed ones that are not Ready any more. Pods that end are drains.
 */
export function differencesOf(
  { cluster, inventory, sync }: DifferencesOptions,
  holder: Holder,
  { followed, slices }: Pick<Compared, 'followed' | 'slices'>,
  { clocks: { nodes }, gainedAt }: Compared,
  now: Millis
): ReadonlyMap<NodeKey, Millis> {
  const { pods } = cluster
  const listed = new Set(holder.nodes.map(({ key }) => key))
  const members = sync?.members(holder.key)
  const late = new Set(
    [...nodes].flatMap(([node, since]) => (since < gainedAt && now - since > ON_PURPOSE_MS ? [] : [node]))
  )
  /** Whether another holder lists the endpoint, but no node of this holder. The two then share the Service's pods (a canary, a subset). */
  const isElsewhere = (node: NodeKey): boolean =>
    inventory
      .byHost(addressOf(node).host)
      .some(other => !other.nodes.some(({ host }) => holder.nodes.some(own => own.host === host)))
  const readyAt = (node: NodeKey): Millis | undefined =>
    pods.byIp(addressOf(node).host).flatMap(({ uid }) => pods.becameReady().get(uid) ?? [])[0]
  const found = members
    ? [...members].filter(node => !listed.has(node))
    : followed
      ? missingFrom(cluster, holder, followed, { now, late }).filter(node => !isElsewhere(node))
      : []
  const stays = (host: string) => pods.byIp(host).some(({ deletionAt }) => deletionAt === undefined)
  const notReady = new Set(
    slices.flatMap(({ endpoints }) => endpoints.filter(({ ready }) => !ready).map(one => one.address))
  )
  // Other owners than an ingress controller may list on purpose what is not Ready.
  const left =
    holder.owner === 'unknown' ? [] : holder.nodes.filter(({ host }) => notReady.has(host) && stays(host))
  return new Map([
    ...found.map(node => [node, readyAt(node) ?? now] as const),
    ...left.map(({ key }) => [key, now] as const)
  ])
}

/** How far a holder is behind Kubernetes now. */
export type HolderClock = Pick<HolderView, 'missing' | 'notReady' | 'behind'>

/** The clock of a holder that is not behind. */
export const QUIET: HolderClock = { missing: [], notReady: [], behind: null }

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
  const owner = clocks.owes !== undefined && clocks.owes < readAt ? clocks.owes : null
  const nodes = [...clocks.nodes].flatMap(([node, since]) => (since < readAt ? [{ node, since }] : []))
  const gateways = [...clocks.waiting].flatMap(([gateway, { since, why }]) =>
    why === '' ? [] : [{ gateway, since, why }]
  )
  if (owner === null && gateways.length === 0) return QUIET
  const since = Math.min(owner ?? Infinity, ...gateways.map(one => one.since))
  const cause = owner === null ? 'gateways' : isSynced() ? 'sync' : 'owner'
  const isListed = ({ node }: { readonly node: NodeKey }) => holder.nodes.some(({ key }) => key === node)
  return {
    missing: nodes.filter(one => !isListed(one)),
    notReady: nodes.filter(isListed),
    behind: { since, owner, cause, gateways }
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
  status: (uid: PodUid) => Status
): ReadonlyMap<HolderKey, readonly GatewayBehind[]> {
  const found = new Map<HolderKey, GatewayBehind[]>()
  for (const drain of drains) {
    if (drain.phase !== 'draining' || drain.verdict.kind !== 'waiting' || drain.verdict.lastEndpoint) continue
    const late = drain.verdict.gateways.filter(({ sealedAt, at }) => (sealedAt ?? at) === undefined)
    if (late.length === 0) continue
    const since = latestDecision(momentsOf(drain, status(drain.uid)))
    const { namespace, name } = drain.pod
    for (const { key } of drain.verdict.holders) {
      const behind = late.map(({ name: gateway, why }) => ({
        gateway,
        since,
        why: `${namespace}/${name} ends: ${why}`
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

/** Only gateways that get requests must have the latest revision. */
const serves = ({ ready, terminating }: GatewayFact): boolean => ready && !terminating

export const servingNames = (gateways: readonly GatewayFact[]): readonly string[] =>
  gateways.filter(serves).map(({ name }) => name)

/** The revision up to which the slowest worker of a gateway has applied one kind of object, and since when. */
interface Applied {
  readonly revision: number
  readonly at: Millis
  /** When the agent last asked. If that failed, the report is older. */
  readonly askedAt: Millis
  readonly problem: string
}

/**
 * Whether each serving gateway has a holder's revision: by its workers' reports, else by the last read of its Control API. A gateway that
 * can show neither is left out. A report from before `wroteAt` cannot show that a gateway lacks the revision. Revisions come from etcd, so
 * in standalone mode only the Control API counts.
 */
export function gatewaysHave(
  { barrier, probe, mode }: Pick<Sources, 'barrier' | 'probe' | 'mode'>,
  gateways: readonly GatewayFact[]
): (holder: Holder, wroteAt: Millis) => readonly GatewayHas[] {
  const hasRevisions = mode.current().mode === 'etcd'
  const cache = new Map<string, Applied | undefined>()

  const appliedBy = (id: string, kind: Resource): Applied | undefined => {
    const state = hasRevisions ? barrier?.state(id) : undefined
    const workers = (state?.status?.workers ?? []).filter(({ exiting }) => exiting !== true)
    if (!state || workers.length === 0 || state.lastSuccessAt === undefined) return undefined
    const { lastSuccessAt, status } = state
    const ageOf = (applied: number) => Math.max(0, (status?.now ?? 0) - applied) * 1000
    const at = workers.map(({ applied }) => lastSuccessAt - (applied ? ageOf(applied) : 0))
    return {
      revision: slowestOf(workers, kind),
      at: latest(at) ?? lastSuccessAt,
      askedAt: state.lastAttemptAt ?? lastSuccessAt,
      problem: state.problem
    }
  }

  const byWorkers = (name: string, one: Applied, revision: number, wroteAt: Millis): GatewayHas => {
    if (one.revision >= revision) return { name, at: one.at, why: '' }
    if (one.askedAt < wroteAt) return { name, at: undefined, why: '' }
    const why =
      one.problem === ''
        ? `a worker has applied revision ${one.revision}, and not ${revision}`
        : `it does not answer, and had applied revision ${one.revision} before`
    return { name, at: undefined, why }
  }

  const byReading = (id: string, name: string, holder: Holder, wroteAt: Millis): GatewayHas => {
    const sighting = probe?.sighting(id)
    if (!sighting || sighting.beganAt <= wroteAt) return { name, at: undefined, why: '' }
    const listed = sighting.holders.get(holder.key)
    const there = new Set(listed)
    const isSame = listed && there.size === holder.nodes.length && holder.nodes.every(n => there.has(n.key))
    return isSame
      ? { name, at: sighting.beganAt, why: '' }
      : { name, at: undefined, why: 'its Control API lists other nodes' }
  }

  const serving = gateways.filter(serves)
  return (holder, wroteAt) =>
    serving.flatMap(({ id, name }) => {
      const place = `${id} ${holder.resource}`
      if (!cache.has(place)) cache.set(place, appliedBy(id, holder.resource))
      const applied = holder.revision > 0 ? cache.get(place) : undefined
      if (applied) return [byWorkers(name, applied, holder.revision, wroteAt)]
      return probe && observable(holder) ? [byReading(id, name, holder, wroteAt)] : []
    })
}
