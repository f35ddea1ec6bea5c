import { addressRanges } from '../../base/read.ts'
import type { World } from '../../rules/plan/world.ts'
import type { Sources } from './sources.ts'

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
