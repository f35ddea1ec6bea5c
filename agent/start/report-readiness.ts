import type { Sources } from '../round/gather/sources.ts'
import type { Readiness } from '../report/snapshot/readiness.ts'
import { isNeeded } from '../kubernetes/reflect/watch-status.ts'

/**
 * Reports whether each source is ready: the three watches are complete, a gateway is known, and the holders have been read.
 * (With a barrier, the holders are not needed.) Returns the function that updates this.
 */
export function reportReadiness(
  readiness: Readiness,
  { cluster, inventory, barrier }: Pick<Sources, 'cluster' | 'inventory' | 'barrier'>
): () => void {
  const needed = () => cluster.parts().filter(({ name }) => isNeeded(name))
  const parts = new Map(needed().map(({ name }) => [name, readiness.part(`watch:${name}`)]))
  const gateways = readiness.part('gateways')
  const holders = readiness.part('inventory')
  return () => {
    for (const { name, synced, problem } of needed()) {
      if (synced) parts.get(name)?.ready()
      else parts.get(name)?.notReady(problem || 'the first list is not complete yet')
    }
    if (cluster.gateways().length > 0) gateways.ready()
    else gateways.notReady('no gateway is known: check apisix.gateways')
    if (inventory.readAt() !== undefined || barrier) holders.ready()
    else holders.notReady(inventory.problem() || 'the holders have not been read yet')
  }
}
