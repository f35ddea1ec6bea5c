import type { Gateways } from '../../gateway/barrier/gateways.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { ListSource } from '../../gateway/inventory/lists.ts'
import type { Writer } from '../../gateway/write/writer.ts'
import type { Leader } from '../../kubernetes/lead/elector.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { addressRanges } from '../../base/read.ts'
import { type World, type PlanSettings, endingNodes } from '../../rules/plan/holder.ts'
import { addressOf } from '../../gateway/apisix/holders.ts'
import type { DesiredDrain } from '../../gateway/barrier/desired-entry.ts'
import type { Drains } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'

/** The parts that do I/O. Each has its own cache, which a round reads without waiting, so nothing slow can delay it. */
export interface Sources extends Pick<Gateways, 'barrier' | 'probe'> {
  readonly cluster: Cluster
  readonly inventory: Inventory
  readonly writer: Writer
  readonly gateways: Gateways
  /** The mode of APISIX, which decides whether anything may be written. */
  readonly mode: Pick<ListSource, 'current'>
  /** Whether this agent leads: some work is for only one of several agents. */
  readonly leader: Leader
}

/**
 * The world of a plan, directly from the caches: nothing is copied.
 *
 * @param podRanges ranges in which only pods have addresses; empty: every /24 or /64 in which a pod was seen
 */
export function worldFrom(
  { cluster, inventory }: Pick<Sources, 'cluster' | 'inventory'>,
  podRanges: readonly string[]
): World {
  const isInRange =
    podRanges.length > 0 ? addressRanges(podRanges) : (host: string) => cluster.pods.isNear(host)
  return {
    holders: () => inventory.holders().values(),
    holdersOf: host => inventory.byHost(host),
    ownersOf: ip => cluster.pods.byIp(ip),
    isPodsPlace: host => cluster.pods.endedAt(host) !== undefined || isInRange(host),
    portsOf: pod => {
      const resolved = cluster.slices.portsOf(pod)
      return resolved.length > 0 ? resolved : (cluster.pods.get(pod.uid)?.containerPorts ?? [])
    }
  }
}

/**
 * How long an address counts as a successor's after an entry last named it, in ms. Of the watches of pods and of slices, one may be behind.
 */
const NAMED_MS = 30_000

export type DrainStore = ReturnType<typeof createDrainStore>

/**
 * The drains of the last round, for all parts that need them between two rounds. Only the loop replaces them. The store is made before the
 * loop, because parts that the loop needs read the drains.
 */
export function createDrainStore(world: World) {
  let drains: Drains = new Map()
  /** By host: when an entry last named the host as a successor's. */
  const named = new Map<string, Millis>()
  /** The hosts in the entries' lists of successors. */
  let hosts = new Map<readonly NodeKey[], readonly string[]>()
  return {
    current: (): Drains => drains,
    /** Whether this node is listed and still leads only to this ending pod. A write may have waited, and addresses are reused. */
    isEnding(uid: PodUid, node: NodeKey) {
      const drain = drains.get(uid)
      return drain !== undefined && endingNodes(world, drains, drain).some(match => match.node.key === node)
    },
    /**
     * Whether an entry names this address as a successor's, or did so a moment ago. Gateways then route to the address even if no holder
     * lists it.
     */
    tookOver: (host: string) => named.has(host),
    replace(next: Drains, entries: readonly DesiredDrain[], now: Millis) {
      drains = next
      for (const [host, at] of named) if (now >= at + NAMED_MS) named.delete(host)
      const last = hosts
      hosts = new Map()
      // The entries of one workload share their lists, and few change in a round.
      for (const list of entries.flatMap(({ successors = {} }) => Object.values(successors)))
        hosts.set(list, hosts.get(list) ?? last.get(list) ?? list.map(node => addressOf(node).host))
      for (const list of hosts.values()) for (const host of list) named.set(host, now)
    }
  }
}

/** Returns the settings of one plan: the configured ones, the mode of APISIX, and whether some gateway never had a barrier. */
export function createPlanSettings(
  settings: PlanSettings,
  { mode, barrier, cluster }: Pick<Sources, 'mode' | 'barrier' | 'cluster'>
) {
  /** The gateways that have had a barrier. One that is unfit for a minute is still one of them. */
  const had = new Set<string>()
  /** Whether the gateway refuses a drain, and never had a barrier. Without an answer it does not count yet: that starts a new plan. */
  const isBare = (id: string, uids: readonly PodUid[]): boolean => {
    const doubted = barrier?.doubt(id) !== ''
    if (!doubted && barrier?.state(id)?.status?.fit) had.add(id)
    if (had.has(id)) return false
    const readings = uids.flatMap(uid => barrier?.reading(uid, id) ?? [])
    return readings.some(({ problem, fit }) => doubted || problem !== '' || !fit)
  }
  return (drains: Drains, unsure: ReadonlySet<PodUid>): PlanSettings => {
    const uids = [...drains.keys()]
    return {
      ...settings,
      unsure,
      unbarred: !barrier || cluster.gateways().some(({ id }) => isBare(id, uids)),
      standalone: mode.current().mode === 'standalone'
    }
  }
}
