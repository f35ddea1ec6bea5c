import type { Survey } from '../../round/gather/survey.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { GatewayFact, Millis, NodeKey } from '../../rules/drain/facts.ts'
import { observable } from '../../gateway/apisix/control-api.ts'
import { aged, difference, type AgedDeviation, type DeviationKind } from '../../rules/plan/difference.ts'
import type { Ghost } from '../../rules/members/ghost-nodes.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import type { HolderView } from '../snapshot/holder-view.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Memory } from '../../round/gather/memory.ts'
import type { Upkeep } from '../../upkeep/upkeep.ts'

/** The ghosts of a holder, and how the gateways differ from it, and since when. */
export type HolderDifference = Pick<HolderView, 'ghosts' | 'atGateways'>

interface DriftOptions {
  readonly cluster: Pick<Cluster, 'gateways'>
  /** Absent if the agent reads no gateway. */
  readonly survey: Pick<Survey, 'sighting'> | undefined
  /** Finds the nodes whose pods are gone, whether the agent drained them or not. */
  readonly upkeep: Pick<Upkeep, 'ghosts'>
}

interface DriftLook {
  readonly holders: readonly Holder[]
  readonly drains: readonly Drain[]
  readonly memory: (uid: Drain['uid']) => Memory
  /** When the listing of the holders began. */
  readonly readAt: Millis
  readonly now: Millis
}

/** The number of deviations and the age of the oldest, by place and kind. */
export interface DriftCount {
  readonly where: 'admin' | 'gateway'
  readonly kind: DeviationKind
  readonly nodes: number
  readonly oldestMs: number
}

interface Drift {
  /** Compares some of the holders, and returns the known differences of each. */
  look(world: DriftLook): (key: HolderKey) => HolderDifference
  counts(now: Millis): readonly DriftCount[]
}

/** How many holders one pass compares. The others keep their last result. */
const AT_ONCE = 250

const NONE: HolderDifference = { ghosts: [], atGateways: [] }
const PLACES = [
  ['admin', 'ghost'],
  ['gateway', 'ghost'],
  ['gateway', 'missing'],
  ['gateway', 'stale']
] as const

/**
 * Follows the differences between the lists of nodes. A ghost is a node that outlived a pod that the agent drained or saw end. A node is
 * also a ghost if its address is in a range of pods and has had no pod for a while. Missing ready endpoints are in `behind-view.ts`.
 *
 * Admin API and gateways are read at different times, so one of the readings may just be old. A deviation counts only if readings that
 * began after its first sighting still show it.
 */
export function createDrift({ cluster, survey, upkeep }: DriftOptions): Drift {
  const found = new Map<HolderKey, readonly AgedDeviation[]>()
  let sure: ReadonlyMap<HolderKey, readonly AgedDeviation[]> = new Map()
  let turn = 0

  const sightingsOf = (holder: Holder, gateways: readonly GatewayFact[]) =>
    new Map(
      gateways.flatMap(({ id, name, ready }) => {
        const sighting = ready && observable(holder) ? survey?.sighting(id) : undefined
        return sighting ? [[name, sighting.holders.get(holder.key) ?? []] as const] : []
      })
    )

  const compare = (holder: Holder, ghosts: ReadonlySet<NodeKey>, now: Millis): void => {
    const deviations = difference({
      endpoints: undefined,
      isGone: node => ghosts.has(node),
      admin: holder.nodes.map(({ key }) => key),
      gateways: sightingsOf(holder, cluster.gateways())
    })
    if (deviations.length === 0) found.delete(holder.key)
    else found.set(holder.key, aged(found.get(holder.key) ?? [], deviations, now))
  }

  /** Leaves out the deviations that only older readings show. */
  const surely = (readAt: Millis): typeof sure => {
    const seenAt = new Map(cluster.gateways().map(({ id, name }) => [name, survey?.sighting(id)?.beganAt]))
    const isSure = ({ gateway, kind, since }: AgedDeviation) =>
      (gateway === null && kind === 'ghost') ||
      (since < readAt && (gateway === null || since < (seenAt.get(gateway) ?? -Infinity)))
    return new Map([...found].map(([key, deviations]) => [key, deviations.filter(isSure)]))
  }

  return {
    look({ holders, drains, memory, readAt, now }) {
      const ghosts = joined(ghostsOf(drains, memory), stillListed(upkeep.ghosts(), holders))
      const first = turn < holders.length ? turn : 0
      const looked = holders.slice(first, first + AT_ONCE)
      turn = first + AT_ONCE
      for (const holder of looked) {
        compare(holder, new Set(ghosts.get(holder.key)?.keys()), now)
      }
      const present = new Set(holders.map(({ key }) => key))
      for (const key of found.keys()) if (!present.has(key)) found.delete(key)
      sure = surely(readAt)
      return key => {
        const left = ghosts.get(key)
        const deviations = sure.get(key) ?? []
        if (!left && deviations.length === 0) return NONE
        return {
          ghosts: [...(left ?? [])].map(([node, since]) => ({ node, since })),
          atGateways: deviations.flatMap(({ kind, gateway, node, since }) =>
            gateway === null ? [] : [{ gateway, kind, node, since }]
          )
        }
      }
    },
    counts(now) {
      const all = [...sure.values()].flat()
      return PLACES.map(([where, kind]) => {
        const mine = all.filter(
          one => one.kind === kind && (one.gateway === null ? 'admin' : 'gateway') === where
        )
        return {
          where,
          kind,
          nodes: mine.length,
          oldestMs: Math.max(0, ...mine.map(({ since }) => now - since))
        }
      })
    }
  }
}

/** Nodes that are still listed although their drained pod is gone. */
export const ghostsOf = (drains: readonly Drain[], memory: (uid: Drain['uid']) => Memory) =>
  drains.flatMap(drain => {
    if (drain.phase !== 'gone') return []
    const listed = [...memory(drain.uid).places.values()].filter(({ removedAt }) => removedAt === undefined)
    return listed.map(({ holder, node }) => ({ key: holder.key, node, since: drain.at }))
  })

/** Leaves out ghosts of the last listing that a later read of the holder no longer shows. */
const stillListed = (found: ReadonlyMap<HolderKey, readonly Ghost[]>, holders: readonly Holder[]) =>
  new Map(
    holders.flatMap(({ key, nodes }) => {
      const ghosts = found.get(key)?.filter(({ node }) => nodes.some(other => other.key === node.key))
      return ghosts ? [[key, ghosts]] : []
    })
  )

/** By holder, each node once, with the earliest time. */
function joined(
  drained: ReturnType<typeof ghostsOf>,
  found: ReadonlyMap<HolderKey, readonly Ghost[]>
): ReadonlyMap<HolderKey, ReadonlyMap<NodeKey, Millis>> {
  const all = new Map<HolderKey, Map<NodeKey, Millis>>()
  const add = (key: HolderKey, node: NodeKey, since: Millis) => {
    const nodes = all.get(key) ?? new Map<NodeKey, Millis>()
    all.set(key, nodes.set(node, Math.min(since, nodes.get(node) ?? Infinity)))
  }
  for (const { key, node, since } of drained) add(key, node, since)
  for (const [key, ghosts] of found) for (const { node, since } of ghosts) add(key, node.key, since)
  return all
}
