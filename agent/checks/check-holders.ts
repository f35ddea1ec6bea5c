import type { AdminApi } from '../apisix/admin-api.ts'
import { createHolderIndex } from '../inventory/holder-index.ts'
import { listAll } from '../inventory/listing.ts'
import { nameOfOwner } from '../apisix/owner.ts'
import type { Owner } from '../plan/holder.ts'
import { ok, warn, wordsOf, type Check } from './finding.ts'

const NAME = 'holders'
const LISTED = ['services', 'upstreams', 'routes'] as const

/** Counts holders by their other writer: an ingress controller writes before the agent, and discovery's nodes are never written. */
export function checkHolders(
  admin: Pick<AdminApi, 'list' | 'pageSize' | 'standalone'>,
  mode: 'etcd' | 'standalone' | undefined,
  owner: Owner | undefined
): Check {
  return async signal => {
    try {
      if (mode === 'standalone' || (mode === undefined && (await admin.standalone(signal))))
        return [ok(NAME, 'in the documents of the gateways, whose owner alone writes them')]
      const index = createHolderIndex(owner)
      for (const resource of LISTED) index.replace(resource, await listAll(admin, resource, signal), 0)
      const holders = [...index.holders().values()]
      const counts = Map.groupBy(holders, holder =>
        holder.discovery ? `found by discovery (${holder.discovery.type})` : nameOfOwner(holder.owner)
      )
      const told = [...counts].map(([who, list]) => `${list.length} ${who}`).join(', ')
      return [ok(NAME, holders.length === 0 ? 'none yet' : `${holders.length}, by writer: ${told}`)]
    } catch (err) {
      return [warn(NAME, `the holders cannot be listed: ${wordsOf(err)}`, 'see admin-api')]
    }
  }
}
