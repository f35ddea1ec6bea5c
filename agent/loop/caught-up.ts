import type { BarrierKeeper } from '../confirm/barrier.ts'
import { appliedRevision } from '../confirm/gateway-state.ts'
import type { Resource } from '../plan/holder.ts'
import type { Sources } from './sources.ts'

/**
 * Whether every worker of every gateway is known to have applied all that the inventory lists. One that has not may still route
 * by what was listed before. Looked at once, when it is first asked.
 */
export function caughtUp(
  { inventory, mode, cluster }: Pick<Sources, 'inventory' | 'mode' | 'cluster'>,
  barrier: Pick<BarrierKeeper, 'state'>
): () => boolean {
  let known: boolean | undefined
  const look = (): boolean => {
    // Documents have no revision in common with what the workers tell.
    if (mode.current().mode === 'standalone') return false
    const newest = newestOf(inventory)
    return cluster.gateways().every(({ id }) => {
      const state = barrier.state(id)
      if (state === undefined) return false
      return [...newest].every(([kind, revision]) => (appliedRevision(state, kind) ?? -Infinity) >= revision)
    })
  }
  return () => (known ??= look())
}

/** By kind of object, the highest revision of what lists nodes for HTTP: workers tell nothing of streams, and bar none. */
function newestOf(inventory: Sources['inventory']): ReadonlyMap<Resource, number> {
  const newest = new Map<Resource, number>()
  for (const { resource, revision } of inventory.holders().values()) {
    if (resource === 'stream_routes') continue
    newest.set(resource, Math.max(newest.get(resource) ?? 0, revision))
  }
  return newest
}
