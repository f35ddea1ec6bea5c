import type { Drains } from '../drain/drain.ts'
import type { PodFact } from '../drain/facts.ts'
import type { HolderKey } from '../plan/holder.ts'
import { isEnding, serves } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Sources } from './sources.ts'

/** The revision of a holder from which on a worker knows a node of it that can take over; `undefined`: there is none. */
export type ReplacementSince = (holder: HolderKey) => number | undefined

/**
 * Found once for each holder and round: hundreds of pods of one holder may end at once.
 *
 * A pod that came up after the holder was listed does not count: what that listing shows at its address may be the pod that had it
 * before, and be taken out by now. With `hostNetwork` the successor often comes where the pod was; and a pod that was not
 * Ready for a while has the same address again.
 */
export function replacements(
  { inventory, cluster }: Pick<Sources, 'inventory' | 'cluster'>,
  world: World,
  drains: Drains
): ReplacementSince {
  const ending = new Set([...drains.values()].flatMap(drain => (isEnding(drain) ? drain.pod.ips : [])))
  const found = new Map<HolderKey, number | undefined>()
  const find: ReplacementSince = key => {
    let first: number | undefined
    const holder = inventory.holders().get(key)
    const listedAt = (holder && inventory.readAt(holder.resource)) ?? -Infinity
    const wasUp = ({ uid }: PodFact) => (cluster.pods.upSince(uid) ?? -Infinity) <= listedAt
    for (const node of holder?.nodes ?? []) {
      if (node.weight === 0 || ending.has(node.host)) continue
      const since = inventory.listedSince(key, node.key)
      if (since === undefined || (first !== undefined && since >= first)) continue
      if (serves(world, drains, node, wasUp)) first = since
    }
    return first
  }
  return key => {
    if (!found.has(key)) found.set(key, find(key))
    return found.get(key)
  }
}
