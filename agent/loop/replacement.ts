import type { Drains } from '../drain/drain.ts'
import type { HolderKey } from '../plan/holder.ts'
import { isEnding, serves } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Sources } from './sources.ts'

/** The revision of a holder from which on a worker knows a node of it that can take over; `undefined`: there is none. */
export type ReplacementSince = (holder: HolderKey) => number | undefined

/** Found once for each holder and round: hundreds of pods of one holder may end at once. */
export function replacements(
  { inventory }: Pick<Sources, 'inventory'>,
  world: World,
  drains: Drains
): ReplacementSince {
  const ending = new Set([...drains.values()].flatMap(drain => (isEnding(drain) ? drain.pod.ips : [])))
  const found = new Map<HolderKey, number | undefined>()
  const find: ReplacementSince = key => {
    let first: number | undefined
    for (const node of inventory.holders().get(key)?.nodes ?? []) {
      if (node.weight === 0 || ending.has(node.host)) continue
      const since = inventory.listedSince(key, node.key)
      if (since === undefined || (first !== undefined && since >= first)) continue
      if (serves(world, drains, node)) first = since
    }
    return first
  }
  return key => {
    if (!found.has(key)) found.set(key, find(key))
    return found.get(key)
  }
}
