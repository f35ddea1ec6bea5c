import type { BarrierKeeper } from '../../gateway/barrier/barrier.ts'
import type { Probe } from './probe.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { ListSource } from '../../gateway/inventory/lists.ts'
import type { Writer } from '../../gateway/write/writer.ts'
import type { Leader } from '../../kubernetes/lead/elector.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { addressRanges } from '../../base/read.ts'
import type { World } from '../../rules/plan/holder.ts'

/** The parts that do I/O. Each has its own cache, which a round reads without waiting, so nothing slow can delay it. */
export interface Sources {
  readonly cluster: Cluster
  readonly inventory: Inventory
  readonly writer: Writer
  /** Absent if the Control API is off. */
  readonly probe: Probe | undefined
  /** The mode of APISIX, which decides whether anything may be written. */
  readonly mode: Pick<ListSource, 'current'>
  /** Absent if no barrier is configured. */
  readonly barrier: BarrierKeeper | undefined
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
