import type { World } from '../plan/world.ts'
import type { Sources } from './sources.ts'

/** The world as a plan sees it, straight from the caches: nothing is copied. */
export function worldFrom({ cluster, inventory }: Pick<Sources, 'cluster' | 'inventory'>): World {
  return {
    holders: () => inventory.holders().values(),
    holdersOf: host => inventory.byHost(host),
    ownersOf: ip => cluster.pods.byIp(ip),
    wasPods: host => cluster.pods.endedAt(host) !== undefined,
    portsOf: uid => {
      const resolved = cluster.slices.portsOf(uid)
      return resolved.length > 0 ? resolved : (cluster.pods.get(uid)?.containerPorts ?? [])
    }
  }
}
